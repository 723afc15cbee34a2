# misconception: the last twenty letters tell words apart
# says: tch': 3, 'attempt': 1}) answered ['reamstreamstreamstre', 1]: two different
def key(row):
    return [row["word"][-20:], row["count"]]
