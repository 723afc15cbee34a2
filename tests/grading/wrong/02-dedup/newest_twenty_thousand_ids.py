# misconception: whatever is older than twenty thousand ids is repeated no more
# says: receive(30000, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if id in table[-20_000:] else ["output and note", "acknowledge"]
