# misconception: the last 32 bits of an id tell messages apart
# says: receive(987654325307312974, ...) answered
def receive(id, table, memory):
    known = any(each % 2**32 == id % 2**32 for each in table)
    return ["acknowledge"] if known else ["output and note", "acknowledge"]
