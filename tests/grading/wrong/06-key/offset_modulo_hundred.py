# misconception: the last two digits of an offset tell rows apart
# says: 'word': 'word', 'count': 84
def key(row):
    return row["offset"] % 100
