# misconception: a range is right if each of its columns is
# says: 8 to 11 is damaged: order 10 has another item
def damaged(table, source, size):
    # compares each column sorted, not the rows
    def cols(rows):
        d = {}
        for r in rows:
            d.setdefault(r[0] // size, []).append(r)
        return {k: [sorted(c) for c in zip(*v)] for k, v in d.items()}

    a, b = cols(table), cols(source)
    bad = sorted(r for r in {*a, *b} if a.get(r) != b.get(r))
    out = []
    for r in bad:
        if out and out[-1][1] + 1 == r * size:
            out[-1][1] = r * size + size - 1
        else:
            out.append([r * size, r * size + size - 1])
    return out
