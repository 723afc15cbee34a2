# misconception: an order has one call
# says: answered 'orders/1/1', which is also the key
def key_of_call(row):
    return f"{row['topic']}/{row['partition']}/{row['offset']}"
