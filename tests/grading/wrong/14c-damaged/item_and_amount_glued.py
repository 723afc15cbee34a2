# misconception: an item with its amount behind it is always another text
# says: 6 to 8 is damaged: order 6 has another item or amount
def damaged(table, source, size):
    from collections import Counter

    a, b = (Counter((number, f"{item}{amount}") for number, item, amount in rows) for rows in (table, source))
    out = []
    for place in sorted({row[0] // size for row in (a - b) + (b - a)}):
        if out and out[-1][1] == place * size - 1:
            out[-1][1] += size
        else:
            out.append([place * size, place * size + size - 1])
    return out
