# misconception: an offset fits into 32 bits
# says: answered "['stream', 0, 1154616142, 'mail']", which is also the key of the call of topic 'str
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, offset % 2**32, call])
