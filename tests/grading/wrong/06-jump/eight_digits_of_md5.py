# misconception: eight hexadecimal digits of a hash tell words apart
# says: steady([['rjsrmwzd', 2], ['buewffzz', 1]]) answered False, but all these words differ.
import hashlib


def steady(seen):
    largest = {}
    for word, count in seen:
        short = hashlib.md5(word.encode()).hexdigest()[:8]
        if count < largest.get(short, 0):
            return False
        largest[short] = count
    return True
