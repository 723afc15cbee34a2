# misconception: every id is exact as a floating-point number
# says: receive(987654321012345775, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if float(id) in map(float, table) else ["output and note", "acknowledge"]
