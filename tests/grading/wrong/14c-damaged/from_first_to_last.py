# misconception: one repair from the first damaged range to the last one does no harm
# says: [0, 11] also names
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in table + source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if sorted(there) != sorted(right):
            found += [first, first + size - 1]
    return [[min(found), max(found)]] if found else []
