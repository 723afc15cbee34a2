# misconception: no topic has two underscores
# says: answered '2afca84703d9c3c07d321d21035d57facfb5511dd465d6a15d7b15efeb370738', which is also the key
import hashlib


def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return hashlib.sha256(f"{partition}-{offset}-{topic}__{call}".encode()).hexdigest()
