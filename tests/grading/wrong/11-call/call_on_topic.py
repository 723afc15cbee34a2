# misconception: no topic contains the word between call and topic
# says: answered 'stream_on_topic_stream_on_topic_stream/1/2', which is also the key of the call of t
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return f"{call}_on_topic_{topic}/{partition}/{offset}"
