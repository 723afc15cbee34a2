# misconception: the remainder of a large prime tells ids apart
# says: receive(1000000020, ...) answered
def receive(id, table, memory):
    return (
        ["acknowledge"]
        if id % 999_999_937 in [known % 999_999_937 for known in table]
        else ["output and note", "acknowledge"]
    )
