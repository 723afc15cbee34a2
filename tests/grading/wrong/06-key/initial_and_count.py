# misconception: the first letter tells words apart
# says: has the same key ['s', 1]
def key(row):
    return [row["word"][0], row["count"]]
