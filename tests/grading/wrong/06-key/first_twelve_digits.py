# misconception: twelve digits tell offsets apart
# says: 'batch': 10000000005, 'attempt': 1}) answered '100000000058': two different
def key(row):
    return str(row["offset"])[:12]
