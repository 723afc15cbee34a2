# misconception: four digits are enough to tell where a count begins
# says: t': 10001, 'batch': 105, 'attempt': 1}) answered 'word10001': two different
def key(row):
    return row["word"] + f"{row['count']:04d}"
