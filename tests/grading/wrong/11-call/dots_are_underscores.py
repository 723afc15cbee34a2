# misconception: topics with a dot and with an underscore are the same
# says: answered "['stream_stream', 1, 2, 'stream']", which is also the key of the call of topic 'str
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic.replace(".", "_"), partition, offset, call])
