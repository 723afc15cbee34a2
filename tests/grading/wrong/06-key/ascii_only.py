# misconception: letters that are not ASCII can be left out
# says: answered ['', 1]: two
def key(row):
    return [row["word"].encode("ascii", "ignore").decode(), row["count"]]
