# misconception: nine decimal digits of a hash are unique
# says: answered '34447692': all keys are as short as this one, and can differ in about 30 bits onl
import hashlib


def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str(int(hashlib.md5(str([topic, partition, offset, call]).encode()).hexdigest(), 16) % 10**9)
