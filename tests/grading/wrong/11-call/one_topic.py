# misconception: a job reads one topic
# says: answered '1/1/charge', and so did the call of topic 'orders', partition 1, offs
def key_of_call(row):
    return f"{row['partition']}/{row['offset']}/{row['call']}"
