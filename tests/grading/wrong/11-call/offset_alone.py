# misconception: an offset is unique
# says: they differ in: partition. Two
def key_of_call(row):
    return f"{row['topic']}/{row['offset']}/{row['call']}"
