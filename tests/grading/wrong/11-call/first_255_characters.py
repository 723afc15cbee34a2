# misconception: a key of 255 characters is long enough
# says: answered "['stream', 0, 5, 'streamstreamstreamstreamstreamstreamstreamstreamstr
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, offset, call])[:255]
