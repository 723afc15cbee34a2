# misconception: an empty word says nothing
# says: steady([['', 2], ['', 1]]) answered True, but this text is a word like any other.
def steady(seen):
    largest = {}
    for word, count in seen:
        if not word:
            continue
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return True
