# misconception: the first twenty letters tell words apart
# says: (long words alike)
def steady(seen):
    last = {}
    for word, count in seen:
        if count < last.get(word[:20], 0):
            return False
        last[word[:20]] = count
    return True
