# misconception: letters that are not ASCII can be left out
# says: (letters that are not ASCII)
def steady(seen):
    largest = {}
    for word, count in seen:
        name = word.encode("ascii", "replace")
        if count < largest.get(name, 0):
            return False
        largest[name] = count
    return True
