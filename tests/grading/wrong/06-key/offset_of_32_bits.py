# misconception: an offset fits into 32 bits
# says: 'offset': 4294967460
def key(row):
    return row["offset"] & 0xFFFFFFFF
