# misconception: six digits are enough to tell where a count ends
# says: h': 92233620368548758, 'attempt': 1}) answered '1000000word': two different
def key(row):
    return f"{row['count']:06d}" + row["word"]
