# misconception: the ends and the length tell words apart
# says: answered ['streamstreamstreamst', 'reamstreamstreamstre', 141, 1]: tw
def key(row):
    return [row["word"][:20], row["word"][-20:], len(row["word"]), row["count"]]
