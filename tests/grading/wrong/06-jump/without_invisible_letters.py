# misconception: what nobody sees is no part of a word
# says: steady([['stream', 2], ['stream\n', 1]]) answered False, but all these words differ.
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get("".join(each for each in word if each.isprintable()), 0):
            return False
        largest["".join(each for each in word if each.isprintable())] = count
    return True
