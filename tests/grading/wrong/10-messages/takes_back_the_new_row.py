# misconception: a retraction names the key, and the count in it means nothing
# says: messages('retract', 'hello', 1, 2) answered [['-', 'hello', 2], ['+', 'hello', 2]]
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append" and before is not None:
        return "refused"
    if before is None:
        return [["+", word, after]]
    return [["-", word, before]] if after is None else [["-", word, after], ["+", word, after]]
