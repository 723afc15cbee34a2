# misconception: only the newest two thousand rows count
# says: steady answered True for 2,101 rows, but the first word jumps back in row 2.
def steady(seen):
    largest = {}
    for word, count in seen[-2_000:]:
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return True
