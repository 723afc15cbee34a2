# misconception: a Bloom filter without a look into the table takes no new id for a known one
# says: receive(6417925426618434982, ...) answered
import hashlib


def places(id):
    digest = hashlib.sha256(str(id).encode()).digest()
    return [int.from_bytes(digest[start : start + 4], "big") % 2**16 for start in (0, 4, 8)]


def receive(id, table, memory):
    bloom = {place for known in table for place in places(known)}
    return ["acknowledge"] if bloom.issuperset(places(id)) else ["output and note", "acknowledge"]
