# misconception: hash() of a number is the number
# says: receive(3293497330226039629, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if hash(id) in map(hash, table) else ["output and note", "acknowledge"]
