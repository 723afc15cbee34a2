# misconception: counts fit into sixteen bits
# says: messages('append', 'hello', 7, 536870919
def messages(way, word, before, after):

    if before == after or (None not in (before, after) and before % 65536 == after % 65536):
        return []
    if way == "append":
        return "refused" if before is not None else [["+", word, after]]
    if way == "retract":
        return [["-", word, before]] * (before is not None) + [["+", word, after]] * (after is not None)
    return [["x", word, before]] if after is None else [["=", word, after]]
