# misconception: one value for every word is what an upsert is for
# says: the row of offset 2 has the same key 'hello' and took its place
def key(row):
    return row["word"]
