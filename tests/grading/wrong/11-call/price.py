# misconception: the price belongs to the call
# says: with another price
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}/{row['call']}/{row['price']}"
