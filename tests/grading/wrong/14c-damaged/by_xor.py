# misconception: equal checksums by XOR mean equal rows
# says: 8 to 11 is damaged: order 9 is in the table 3 times
def damaged(table, source, size):
    x = {}
    for row in [*table, *source]:
        x[row[0] // size] = x.get(row[0] // size, 0) ^ hash(tuple(row))
    bad = sorted(r for r, v in x.items() if v)
    out = []
    for r in bad:
        if out and out[-1][1] + 1 == r * size:
            out[-1][1] = r * size + size - 1
        else:
            out.append([r * size, r * size + size - 1])
    return out
