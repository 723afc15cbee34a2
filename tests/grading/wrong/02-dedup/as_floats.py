# misconception: every id is exact as a floating-point number
# says: receive(1152921504606846977, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if float(id) in map(float, table) else ["output and note", "acknowledge"]
