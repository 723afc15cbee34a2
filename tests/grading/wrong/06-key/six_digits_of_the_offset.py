# misconception: six significant digits tell offsets apart
# says: 48577, 'batch': 10491, 'attempt': 1}) answered '1.04916e+06': two different
def key(row):
    return f"{row['offset']:.6g}"
