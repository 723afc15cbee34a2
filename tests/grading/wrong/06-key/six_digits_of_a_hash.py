# misconception: six decimal digits of a hash tell offsets apart
# says: none', 'count': 1, 'batch': 2, 'attempt': 1}) answered 64516: two different
import hashlib


def key(row):
    return int(hashlib.sha256(str(row["offset"]).encode()).hexdigest(), 16) % 10**6
