# misconception: blanks around a word mean nothing
# says: 'word': ' x', 'count': 1,
def key(row):
    return [row["word"].strip(), row["count"]]
