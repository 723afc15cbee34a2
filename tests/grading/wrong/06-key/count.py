# misconception: the count names the row
# says: The row of offset 1 is gone:
def key(row):
    return row["count"]
