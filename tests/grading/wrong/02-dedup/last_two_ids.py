# misconception: only one of the last two messages can come again
# says: receive(137, ...) answered ['output and note', 'acknowledge'], but the id is number 138 of
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-2:] else ["output and note", "acknowledge"]
