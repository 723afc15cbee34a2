# misconception: a partition has at most three digits
# says: answered 'stream/1111111111/room', which is also the key of the call of topic 'stream', parti
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{topic}/{partition:03d}{offset}/{call}"
