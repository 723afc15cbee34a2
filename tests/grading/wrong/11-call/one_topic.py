# misconception: a job reads one topic
# says: they differ in: topic. Two
def key_of_call(row):
    return f"{row['partition']}/{row['offset']}/{row['call']}"
