# misconception: a count is exact as a floating-point number
# says: [['stream', 987654321012345775], ['other', 1], ['stream', 987654321012345678]]) answered T
def steady(seen):
    largest = {}
    for word, count in seen:
        if float(count) < largest.get(word, 0):
            return False
        largest[word] = float(count)
    return True
