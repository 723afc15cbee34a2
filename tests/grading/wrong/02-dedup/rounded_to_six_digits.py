# misconception: six digits tell ids apart
# says: receive(987654321029122894, ...) answered
def receive(id, table, memory):
    return ["acknowledge"] if f"{id:.6g}" in [f"{known:.6g}" for known in table] else ["output and note", "acknowledge"]
