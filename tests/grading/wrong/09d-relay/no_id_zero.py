# misconception: no row has the id 0
# says: message 0 is to be published, and no earlier
def relay_step(rows, published, refused):
    heads = {}
    for number, order in rows:
        heads.setdefault(order, number)
    mark = next((n for n in heads.values() if n in published), None)
    if mark:
        return ["mark", mark]
    free = next((n for n in heads.values() if n not in refused), None)
    return ["publish", free] if free else ["wait"]
