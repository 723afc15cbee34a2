# misconception: the last twenty letters tell words apart
# says: (words with another first letter)
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word[-20:], 0):
            return False
        largest[word[-20:]] = count
    return True
