# misconception: a checksum of 32 bits tells words apart
# says: (the same checksum)
import zlib


def steady(seen):
    largest = {}
    for word, count in seen:
        name = zlib.crc32(word.encode())
        if count < largest.get(name, 0):
            return False
        largest[name] = count
    return True
