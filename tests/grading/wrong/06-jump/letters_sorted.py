# misconception: the letters of a word tell it apart, in any order
# says: (the same letters in another order)
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get("".join(sorted(word)), 0):
            return False
        largest["".join(sorted(word))] = count
    return True
