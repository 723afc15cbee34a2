# misconception: six digits are enough for a count
# says: [['stream', 987654321029122894], ['other', 1], ['stream', 987654321012345678]]) answered T
def steady(seen):
    largest = {}
    for word, count in seen:
        if float(f"{count:.6g}") < largest.get(word, 0):
            return False
        largest[word] = float(f"{count:.6g}")
    return True
