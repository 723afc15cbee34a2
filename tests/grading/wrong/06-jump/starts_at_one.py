# misconception: a reader is there from the beginning
# says: steady([['hello', 2], ['hello', 2]]) answered False
def steady(seen):
    last = {}
    for word, count in seen:
        if count < last.get(word, 1) or (word not in last and count != 1):
            return False
        last[word] = count
    return True
