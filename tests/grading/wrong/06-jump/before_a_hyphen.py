# misconception: a word ends at a hyphen
# says: steady([['stream-a', 2], ['stream-b', 1]]) answered False, but all these words differ.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word.split("-")[0], 0):
            return False
        largest[word.split("-")[0]] = count
    return True
