# misconception: the operator is compares two counts
# says: messages('append', 'world', 1200, 1200) answered 'refused'
def messages(way, word, before, after):
    if before is after:
        return []
    if way == "append":
        return [["+", word, after]] if before is None else "refused"
    if way == "retract":
        return [[s, word, c] for s, c in (("-", before), ("+", after)) if c is not None]
    return [["x", word, before]] if after is None else [["=", word, after]]
