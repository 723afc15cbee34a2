# misconception: a row is right if its id is there once
# says: 4 to 7 is damaged: order 6 has another item
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in table + source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if sorted(row[0] for row in there) != sorted(row[0] for row in right):
            if found and found[-1][1] == first - 1:
                found[-1][1] = first + size - 1
            else:
                found.append([first, first + size - 1])
    return found
