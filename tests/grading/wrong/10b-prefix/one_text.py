# misconception: tables are equal if their rows, one after the other, make the same text
# says: right([['x:1y', 2]],
def right(table, words):
    counted = sorted(f"{word}:{words.count(word)}" for word in set(words))
    return "".join(sorted(f"{word}:{count}" for word, count in table)) == "".join(counted)
