# misconception: the last ten digits tell ids apart
# says: receive(987654331012345678, ...) answered
def receive(id, table, memory):
    return (
        ["acknowledge"]
        if str(id)[-10:] in [str(known)[-10:] for known in table]
        else ["output and note", "acknowledge"]
    )
