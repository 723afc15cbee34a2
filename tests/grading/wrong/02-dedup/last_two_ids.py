# misconception: only one of the last two messages can come again
# says: the id is number 138 of 140 in the table
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-2:] else ["output and note", "acknowledge"]
