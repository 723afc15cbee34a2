# misconception: a word has at most 32 letters
# says: messages('append', 'xxxxxxxxxxxxxxxxxxxx
def messages(way, word, before, after):
    word = word[:32]
    if before == after:
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
