# misconception: a job reads one topic
# says: answered '1/1/charge', which is also the key of the call of topic 'orders', partition 1, offs
def key_of_call(row):
    return f"{row['partition']}/{row['offset']}/{row['call']}"
