# misconception: the last 32 bits of an id tell messages apart
# says: receive(4294967435, ...) answered
def receive(id, table, memory):
    known = any(each % 2**32 == id % 2**32 for each in table)
    return ["acknowledge"] if known else ["output and note", "acknowledge"]
