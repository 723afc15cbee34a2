# misconception: an empty word is an error
# says: steady([['', 2], ['x', 1]]) answered False, but the empty text is a word like any other.
def steady(seen):
    largest = {}
    for word, count in seen:
        if not word or count < largest.get(word, 0):
            return False
        largest[word] = count
    return True
