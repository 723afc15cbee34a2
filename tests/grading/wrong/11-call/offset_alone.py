# misconception: an offset is unique
# says: answered 'orders/1/charge', which is also the key of the call of topic 'orders', partition 1,
def key_of_call(row):
    return f"{row['topic']}/{row['offset']}/{row['call']}"
