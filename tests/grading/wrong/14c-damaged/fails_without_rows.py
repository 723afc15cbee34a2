# misconception: there is always a row
# says: max() arg is an empty sequence
def damaged(table, source, size):
    top = max(r[0] for r in table + source)
    bad = [
        f
        for f in range(top // size + 1)
        if sorted(r for r in table if r[0] // size == f) != sorted(r for r in source if r[0] // size == f)
    ]
    out = []
    for r in bad:
        if out and out[-1][1] + 1 == r * size:
            out[-1][1] = r * size + size - 1
        else:
            out.append([r * size, r * size + size - 1])
    return out
