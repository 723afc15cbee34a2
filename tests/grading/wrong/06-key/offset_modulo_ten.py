# misconception: the last digit of an offset tells rows apart
# says: key({'offset': 10, 'word': 'a', 'count': 9
def key(row):
    return row["offset"] % 10
