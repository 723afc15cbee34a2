# misconception: the time makes a key unique
# says: with another now
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}/{row['call']}/{row['now']}"
