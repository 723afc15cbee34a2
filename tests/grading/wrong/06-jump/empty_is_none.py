# misconception: an empty word is no word
# says: steady([['', 2], ['None', 1]]) answered False, but the empty text is a word like any other.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word or "None", 0):
            return False
        largest[word or "None"] = count
    return True
