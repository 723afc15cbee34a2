# misconception: no more than three thousand words are counted
# says: (thousands of words)
def right(table, words):
    counts = {}
    for word in words[:3_000]:
        counts[word] = counts.get(word, 0) + 1
    return sorted(map(tuple, table)) == sorted(counts.items())
