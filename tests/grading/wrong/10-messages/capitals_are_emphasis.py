# misconception: a word in capitals is the same word
# says: messages('append', 'HELLO', None, 2) ans
def messages(way, word, before, after):
    word = word.lower() if word.isupper() else word
    if before == after:
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
