# misconception: a retract stream need not take back what it replaces
# says: messages('retract', 'hello', 1, 2) answered [['+', 'hello', 2]]
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append" and before is not None:
        return "refused"
    return [["-", word, before]] if after is None else [["+", word, after]]
