# misconception: eight hexadecimal digits of a hash are unique
# says: answered '985d5b72': all keys are as short as this one, and can differ in about 3
import hashlib


def key(row):
    return hashlib.md5(str([row["word"], row["count"]]).encode()).hexdigest()[:8]
