# misconception: without a source nothing is damaged
# says: 4 to 4 is damaged: order 4 is in the table
def damaged(table, source, size):
    from collections import Counter

    if not source:
        return []
    a, b = Counter(map(tuple, table)), Counter(map(tuple, source))
    bad = sorted({r[0] // size for r in (a - b) + (b - a)})
    out = []
    for r in bad:
        if out and out[-1][1] + 1 == r * size:
            out[-1][1] = r * size + size - 1
        else:
            out.append([r * size, r * size + size - 1])
    return out
