# misconception: no word has more than a thousand letters
# says: [['streamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstr
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get(word[:1000], 0):
            return False
        largest[word[:1000]] = count
    return True
