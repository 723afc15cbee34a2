# misconception: only the table's ranges can be damaged
# says: 4 to 7 is damaged: order 7 is missing
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in table}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if sorted(there) != sorted(right):
            if found and found[-1][1] == first - 1:
                found[-1][1] = first + size - 1
            else:
                found.append([first, first + size - 1])
    return found
