# misconception: eight hexadecimal digits of a hash tell words apart
# says: unt': 1, 'batch': 3, 'attempt': 1}) answered ['5ba9a898', 1]: two different
import hashlib


def key(row):
    return [hashlib.md5(row["word"].encode()).hexdigest()[:8], row["count"]]
