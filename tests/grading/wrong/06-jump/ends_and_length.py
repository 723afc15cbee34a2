# misconception: the ends and the length tell words apart
# says: [['streamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreamstreastreamstreamstre
def steady(seen):
    largest = {}
    for word, count in seen:
        if count < largest.get((word[:30], word[-30:], len(word)), 0):
            return False
        largest[(word[:30], word[-30:], len(word))] = count
    return True
