# misconception: a gap of one order belongs to the repair
# says: [2, 4] also names
def damaged(table, source, size):
    bad = []
    for first in sorted({r[0] // size * size for r in table + source}):
        a = [r for r in table if r[0] // size * size == first]
        b = [r for r in source if r[0] // size * size == first]
        if set(map(tuple, a)) != set(map(tuple, b)) or len(a) > len(b):
            bad.append(first)
    out = []
    for f in bad:
        if out and f - out[-1][1] <= 2:
            out[-1][1] = f + size - 1  # off by one: matters for size 1
        else:
            out.append([f, f + size - 1])
    return out
