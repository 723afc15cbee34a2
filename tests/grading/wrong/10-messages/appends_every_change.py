# misconception: an append-only stream carries every result
# says: messages('append', 'hello', 1, None) answered []
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append":
        return [] if after is None else [["+", word, after]]
    taken = [] if before is None else [["-", word, before]]
    return taken if after is None else [*taken, ["+", word, after]]
