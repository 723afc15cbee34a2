# misconception: only one of the last three messages can come again
# says: the id is number 137 of 140 in the table
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-3:] else ["output and note", "acknowledge"]
