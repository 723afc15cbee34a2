# misconception: an offset has at most 32 bits
# says: answered 'stream/73014444032/room', which is also the key of the call of topic 'stream', part
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{topic}/{partition * 2**32 + offset}/{call}"
