# misconception: a call has one line
# says: answered "['stream', 0, 5, 'stream']", which is also the key of the call of topic 'stream', p
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, offset, call.partition("\n")[0]])
