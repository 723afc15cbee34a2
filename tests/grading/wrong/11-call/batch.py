# misconception: a record is always in the same batch
# says: with another batch
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}/{row['call']}/{row['batch']}"
