# misconception: words of the same letters are the same
# says: (listen or silent)
def right(table, words):
    counted = [["".join(sorted(word)), words.count(word)] for word in set(words)]
    return sorted(["".join(sorted(word)), count] for word, count in table) == sorted(counted)
