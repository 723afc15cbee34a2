# misconception: eight hexadecimal digits of a hash tell calls apart
# says: answered "['stream', 0, 5, '5ba9a898']", which is also the key of the call of topic 'stream',
import hashlib


def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, offset, hashlib.md5(call.encode()).hexdigest()[:8]])
