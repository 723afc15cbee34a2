# misconception: only one of the last two messages can come again
# says: the id is number 38 of 40 in the table
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-2:] else ["output and note", "acknowledge"]
