# misconception: counts grow, whatever the word
# says: answered False, but this is a state of a good system (two_phase, two batches): No reader saw the value of a key go back
def steady(seen):
    counts = [count for _, count in seen]
    return counts == sorted(counts)
