# misconception: a message more does no harm
# says: messages('append', 'hello', 1, 1) answered 'refused'
def messages(way, word, before, after):
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append" and before is not None:
        return "refused"
    taken = [] if before is None else [["-", word, before]]
    return taken if after is None else [*taken, ["+", word, after]]
