# misconception: no word has more than a thousand letters
# says: answered ['streamstreamstreamstreamstreamstreamstreamstreamstreamstre
def key(row):
    return [row["word"][:1000], row["count"]]
