# misconception: the count names the row
# says: the row of offset 0 has the same key 1 and took its place
def key(row):
    return row["count"]
