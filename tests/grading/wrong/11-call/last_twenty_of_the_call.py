# misconception: the last twenty letters tell calls apart
# says: answered "['stream', 0, 5, 'reamstreamstreamstre']", which is also the key of the call of top
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, offset, call[-20:]])
