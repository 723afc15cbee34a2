# misconception: the same row has the same fields
# says: The row of offset 1 is in the table 2 times, under the keys "1-0-1-1-world" and "2-0-1-1-world"
def key(row):
    return "-".join(str(row[name]) for name in sorted(row))
