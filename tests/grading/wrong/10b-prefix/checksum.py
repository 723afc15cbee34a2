# misconception: words with the same checksum are the same
# says: (plumless or buckeroo)
from zlib import crc32


def right(table, words):
    counted = [[crc32(word.encode()), words.count(word)] for word in set(words)]
    return sorted([crc32(word.encode()), count] for word, count in table) == sorted(counted)
