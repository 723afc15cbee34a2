# misconception: a count fits into 32 bits
# says: [['stream', 987654325307312974], ['other', 1], ['stream', 987654321012345678]]) answered T
def steady(seen):
    largest = {}
    for word, count in seen:
        if (count % 2**32) < largest.get(word, 0):
            return False
        largest[word] = count % 2**32
    return True
