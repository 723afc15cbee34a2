# misconception: words that differ in their case alone are one word
# says: nothing is wrong with this state (hello and Hello)
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word.lower(), 0):
            return False
        largest[word.lower()] = count
    return True
