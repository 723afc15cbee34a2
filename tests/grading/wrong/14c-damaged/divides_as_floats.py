# misconception: dividing and cutting the fraction is the same as //
# says: 999999999999999999 to 1000000000000000001 is damaged
def damaged(table, source, size):
    from collections import Counter

    a, b = (Counter((number, item, amount) for number, item, amount in rows) for rows in (table, source))
    out = []
    for place in sorted({int(row[0] / size) for row in (a - b) + (b - a)}):
        if out and out[-1][1] == place * size - 1:
            out[-1][1] += size
        else:
            out.append([place * size, place * size + size - 1])
    return out
