# misconception: an id is in the table if its digits are in the table's text
# says: receive(9, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if str(id) in str(table) else ["output and note", "acknowledge"]
