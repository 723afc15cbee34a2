# misconception: only one of the last 64 messages can come again
# says: the id is number 76 of 140 in the table
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-64:] else ["output and note", "acknowledge"]
