# misconception: every damaged range is a repair of its own
# says: Join ranges that touch
def damaged(table, source, size):
    found = []
    for first in sorted({row[0] // size * size for row in table + source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        if sorted(there) != sorted(right):
            found.append([first, first + size - 1])
    return found
