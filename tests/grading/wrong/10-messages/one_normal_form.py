# misconception: words that a reader sees as one are one
# says: messages('append', 'cafe\u0301', None, 2
def messages(way, word, before, after):
    import unicodedata

    word = unicodedata.normalize("NFC", word)
    if before == after:
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
