# misconception: a message carries the word in its simplest form
# says: messages('append', 'Hello', None, 2) ans
def messages(way, word, before, after):
    word = word.strip().lower()
    if before == after:
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
