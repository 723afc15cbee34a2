# misconception: count and word name the row, also without anything between them
# says: 'word': 'x', 'count': 11,
def key(row):
    return f"{row['count']}{row['word']}"
