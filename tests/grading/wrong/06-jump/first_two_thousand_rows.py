# misconception: two thousand rows show whether values jump back
# says: steady answered True for 2,100 rows, but the only word jumps back in the last row.
def steady(seen):
    largest = {}
    for word, count in seen[:2_000]:
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return True
