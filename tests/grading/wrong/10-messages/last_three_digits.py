# misconception: counts are equal if their last three digits are
# says: messages('append', 'hello', 7, 900000007
def messages(way, word, before, after):
    if (before is not None and after is not None and before % 1000 == after % 1000) or before is after:
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
