# misconception: an offset fits into 32 bits
# says: : 4294967296, 'batch': 42949678, 'attempt': 1}) answered 585: two different
def key(row):
    return row["offset"] & 0xFFFFFFFF
