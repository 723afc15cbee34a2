# misconception: a topic has fewer than a thousand partitions
# says: answered 'stream/1222111/room', which is also the key of the call of topic 'stream', partitio
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{topic}/{partition + 1_000 * offset}/{call}"
