# misconception: counts that are close are equal
# says: messages('append', 'hello', 999999999, 1
def messages(way, word, before, after):
    import math

    if before == after or (None not in (before, after) and math.isclose(before, after)):
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
