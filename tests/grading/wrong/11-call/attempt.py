# misconception: each attempt is another call
# says: with another attempt
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}/{row['call']}/{row['attempt']}"
