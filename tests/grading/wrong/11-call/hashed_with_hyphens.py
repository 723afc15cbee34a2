# misconception: nobody sees the hyphens in a hash
# says: answered 'd13c232dfb266d3ee9cdde211bb4f7593920cce792692d04486f674bc191d27e', which is also the key
import hashlib


def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return hashlib.sha256(f"{call}-{topic}-{partition}-{offset}".encode()).hexdigest()
