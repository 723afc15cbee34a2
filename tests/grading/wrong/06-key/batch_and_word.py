# misconception: a word comes once in a batch
# says: the row of offset 2 has the same key [0, 'hello'] and took its place
def key(row):
    return [row["batch"], row["word"]]
