# misconception: numbers in a row stay apart
# says: answered 'orderscharge111'
def key_of_call(row):
    return f"{row['topic']}{row['call']}{row['partition']}{row['offset']}"
