# misconception: a reader sees every count
# says: steady([['hello', 1], ['hello', 3]]) answered False
def steady(seen):
    last = {}
    for word, count in seen:
        if word in last and count not in (last[word], last[word] + 1):
            return False
        last[word] = count
    return True
