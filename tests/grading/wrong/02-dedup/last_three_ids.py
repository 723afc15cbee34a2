# misconception: only one of the last three messages can come again
# says: receive(136, ...) answered ['output and note', 'acknowledge'], but the id is number 137 of
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-3:] else ["output and note", "acknowledge"]
