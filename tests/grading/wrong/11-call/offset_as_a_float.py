# misconception: an offset is exact as a floating-point number
# says: answered "['stream', 0, 9.876543210123457e+17, 'mail']", which is also the key of the call of
def key_of_call(row):
    topic, partition, offset, call = (row[name] for name in ("topic", "partition", "offset", "call"))
    return str([topic, partition, float(offset), call])
