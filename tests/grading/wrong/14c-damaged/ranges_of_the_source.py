# misconception: only the source's ranges can be damaged
# says: 16 to 19 is damaged: order 17
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if sorted(there) != sorted(right):
            if found and found[-1][1] == first - 1:
                found[-1][1] = first + size - 1
            else:
                found.append([first, first + size - 1])
    return found
