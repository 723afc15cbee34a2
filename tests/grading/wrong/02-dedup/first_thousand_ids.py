# misconception: the oldest thousand ids are enough
# says: receive(2525, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if id in table[:1000] else ["output and note", "acknowledge"]
