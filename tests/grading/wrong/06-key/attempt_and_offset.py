# misconception: every write needs a name of its own
# says: The row of offset 1 is there 2 times, by the keys [1, 1] and [2, 1]
def key(row):
    return [row["attempt"], row["offset"]]
