# misconception: the last twelve digits tell offsets apart
# says: 'batch': 43210123456, 'attempt': 1}) answered '321012345678': two different
def key(row):
    return str(row["offset"])[-12:]
