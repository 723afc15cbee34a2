# misconception: a call does not begin with a digit
# says: answered 'stream:1:11x', which is also the key of the call of topic 'stream', partition 1, of
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{topic}:{partition}:{offset}{call}"
