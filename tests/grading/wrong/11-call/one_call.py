# misconception: an order has one call
# says: they differ in: call
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}"
