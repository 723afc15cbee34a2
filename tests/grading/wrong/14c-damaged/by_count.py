# misconception: ranges with equally many rows are equal
# says: 0 to 3 is damaged: order 2 is in the table 2 times
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in table + source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if len(there) != len(right):
            if found and found[-1][1] == first - 1:
                found[-1][1] = first + size - 1
            else:
                found.append([first, first + size - 1])
    return found
