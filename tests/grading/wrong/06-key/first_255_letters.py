# misconception: a column of 255 letters holds every word
# says: hel...: two different
def key(row):
    return [row["word"][:255], row["count"]]
