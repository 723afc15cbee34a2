# misconception: counts are equal if their last digits are
# says: messages('append', 'world', 0, 1200) ans
def messages(way, word, before, after):

    if before == after or (None not in (before, after) and before % 10 == after % 10):
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
