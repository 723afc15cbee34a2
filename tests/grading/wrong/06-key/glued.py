# misconception: word and count side by side name the row
# says: answered 'a11': two different records
def key(row):
    return row["word"] + str(row["count"])
