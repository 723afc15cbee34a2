# misconception: a blank and an underscore are the same
# says: unt': 1, 'batch': 2, 'attempt': 1}) answered ['stream__', 1]: two different
def key(row):
    return [row["word"].replace(" ", "_"), row["count"]]
