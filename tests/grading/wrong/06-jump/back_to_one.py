# misconception: a jump is a count of 1 after a count of 2
# says: steady([['hello', 3], ['hello', 1]]) answered True
def steady(seen):
    last = {}
    for word, count in seen:
        if count == 1 and last.get(word) == 2:
            return False
        last[word] = count
    return True
