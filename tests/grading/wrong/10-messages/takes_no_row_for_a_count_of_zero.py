# misconception: a count of 0 is the same as no row
# says: messages('append', 'world', None, 0) answered []
def messages(way, word, before, after):
    if before == after:
        return []
    if way == "upsert":
        return [["=", word, after]] if after else [["x", word, before]]
    if way == "append" and before:
        return "refused"
    taken = [["-", word, before]] if before else []
    return [*taken, ["+", word, after]] if after else taken
