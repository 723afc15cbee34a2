# misconception: a few numbers are enough when old ones are used again
# says: The row of offset 4 is gone
def key(row):
    return row["offset"] % 4
