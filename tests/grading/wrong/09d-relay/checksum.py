# misconception: names with the same checksum are the same order
# says: of order buckeroo was refused
from zlib import crc32


def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if crc32(order.encode()) in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held_up.add(crc32(order.encode()))
    return ["wait"]
