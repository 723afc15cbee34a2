# misconception: every write needs a name of its own
# says: The row of offset 1 is in the table 2 times, under the keys [1, 1] and [2, 1]
def key(row):
    return [row["attempt"], row["offset"]]
