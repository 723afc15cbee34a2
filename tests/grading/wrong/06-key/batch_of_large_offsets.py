# misconception: an offset that needs 63 bits is not whole, so the batch has to be added
# says: answered [4611686018427388611, 46116860184273886] and key(
def key(row):
    if row["offset"] < 2**62:
        return row["offset"]
    return [row["offset"], row["batch"]]
