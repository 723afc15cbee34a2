# misconception: a row that is gone has the count 0
# says: messages('upsert', 'hello', 1, None) answered [['=', 'hello', 0]]
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["=", word, 0 if after is None else after]]
    if way == "append" and before is not None:
        return "refused"
    taken = [] if before is None else [["-", word, before]]
    return taken if after is None else [*taken, ["+", word, after]]
