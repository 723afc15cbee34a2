# misconception: who has seen nothing cannot say that nothing jumped back
# says: steady([]) answered False, but nobody has seen a row.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return bool(seen)
