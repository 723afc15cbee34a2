# misconception: a hyphen keeps the fields apart
# says: answered 'a-1-1-3-d'
def key_of_call(row):
    return f"{row['topic']}-{row['partition']}-{row['offset']}-{row['call']}"
