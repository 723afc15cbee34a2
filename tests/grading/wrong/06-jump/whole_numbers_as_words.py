# misconception: a word of digits is a number
# says: steady([['1', 2], ['01', 1]]) answered False, but all these words differ.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(int(word) if word.isdigit() else word, 0):
            return False
        largest[int(word) if word.isdigit() else word] = count
    return True
