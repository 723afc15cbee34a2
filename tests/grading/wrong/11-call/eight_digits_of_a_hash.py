# misconception: eight hexadecimal digits of a hash are unique
# says: answered '0f5fa0e5': all keys are as short as this one, and can differ in about 32 bits onl
import hashlib


def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return hashlib.sha256(str([topic, partition, offset, call]).encode()).hexdigest()[:8]
