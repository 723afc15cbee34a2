# misconception: a hundred words are enough to watch
# says: steady answered True for 2,101 rows, but the newest of all words jumps back in the last row.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word, 0):
            return False
        if word in largest or len(largest) < 100:
            largest[word] = count
    return True
