# misconception: an amount is never negative
# says: 9 to 11 is damaged: order 10 has another item or amount
def damaged(table, source, size):
    from collections import Counter

    a, b = (Counter((number, item, abs(amount)) for number, item, amount in rows) for rows in (table, source))
    out = []
    for place in sorted({row[0] // size for row in (a - b) + (b - a)}):
        if out and out[-1][1] == place * size - 1:
            out[-1][1] += size
        else:
            out.append([place * size, place * size + size - 1])
    return out
