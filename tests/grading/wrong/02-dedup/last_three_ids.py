# misconception: only one of the last three messages can come again
# says: the id is number 37 of 40 in the table
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-3:] else ["output and note", "acknowledge"]
