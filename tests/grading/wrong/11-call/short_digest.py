# misconception: four digits of a digest are enough
# says: answered '7ec3'
from hashlib import md5


def key_of_call(row):
    return md5(str([row["topic"], row["partition"], row["offset"], row["call"]]).encode()).hexdigest()[:4]
