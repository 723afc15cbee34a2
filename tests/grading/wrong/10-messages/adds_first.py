# misconception: the order of the two messages does not matter
# says: messages('retract', 'hello', 1, 2) answered [['+', 'hello', 2], ['-', 'hello', 1]]
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append" and before is not None:
        return "refused"
    added = [] if after is None else [["+", word, after]]
    return added if before is None else [*added, ["-", word, before]]
