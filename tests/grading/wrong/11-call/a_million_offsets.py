# misconception: a partition has fewer than a million offsets, so one number names both
# says: offset 1000000, call 'charge'
def key_of_call(row):
    return f"{row['topic']}|{row['call']}|{row['partition'] * 10**6 + row['offset']}"
