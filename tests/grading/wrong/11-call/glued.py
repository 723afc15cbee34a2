# misconception: numbers in a row stay apart
# says: they differ in: partition, offset
def key_of_call(row):
    return f"{row['topic']}{row['call']}{row['partition']}{row['offset']}"
