# misconception: batch ids never come again
# says: The row of offset 1 is in the table 2 times, under the keys [1, 1] and [0, 1]
def key(row):
    return [row["batch"], row["offset"]]
