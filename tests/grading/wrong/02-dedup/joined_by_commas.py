# misconception: an id is in the table if a comma follows its digits in the table's text
# says: receive(87654321012345678, ...) answered
def receive(id, table, memory):
    return (
        ["acknowledge"] if f"{id}," in "".join(f"{known}," for known in table) else ["output and note", "acknowledge"]
    )
