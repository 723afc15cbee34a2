# misconception: an offset has at most ten digits
# says: answered 'stream/110000000000/room', which is also the key of the call of topic 'stream', par
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{topic}/{partition}{offset:010d}/{call}"
