# misconception: eight hexadecimal digits of a hash tell ids apart
# says: receive(270660532994789168, ...) answered
import hashlib


def receive(id, table, memory):
    short = [hashlib.md5(str(each).encode()).hexdigest()[:8] for each in (id, *table)]
    return ["acknowledge"] if short[0] in short[1:] else ["output and note", "acknowledge"]
