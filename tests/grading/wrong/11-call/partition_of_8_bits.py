# misconception: a topic has at most 256 partitions
# says: answered "['stream', 78, 7, 'mail']", which is also the key of the call of topic 'stream', pa
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition % 256, offset, call])
