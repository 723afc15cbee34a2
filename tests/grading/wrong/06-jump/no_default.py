# misconception: every word has been seen before
# says: steady([['world', 1], ['hello', 1], ['hello', 2]]) raised KeyError:
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest[word]:
            return False
        largest[word] = count
    return True
