# misconception: ranges that follow each other in the list touch
# says: [10, 39] also names
def damaged(table, source, size):
    found, last_was_damaged = [], False
    for first in sorted({row[0] // size * size for row in table + source}):
        there, right = ([row for row in rows if row[0] // size * size == first] for rows in (table, source))
        is_damaged = sorted(there) != sorted(right)
        if is_damaged and last_was_damaged:
            found[-1][1] = first + size - 1
        elif is_damaged:
            found.append([first, first + size - 1])
        last_was_damaged = is_damaged
    return found
