# misconception: a column of 255 letters holds every word
# says: (very long words alike)
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word[:255], 0):
            return False
        largest[word[:255]] = count
    return True
