# misconception: a repeat comes soon, so the newest thousand ids are enough
# says: receive(5050, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-1000:] else ["output and note", "acknowledge"]
