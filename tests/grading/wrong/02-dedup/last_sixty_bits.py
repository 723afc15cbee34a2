# misconception: sixty bits of an id are enough
# says: receive(2140575825619192654, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if id % 2**60 in [known % 2**60 for known in table] else ["output and note", "acknowledge"]
