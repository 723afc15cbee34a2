# misconception: a checksum of 32 bits tells words apart
# says: answered [1306201125, 1]
import zlib


def key(row):
    return [zlib.crc32(row["word"].encode()), row["count"]]
