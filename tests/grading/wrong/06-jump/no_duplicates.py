# misconception: whoever sees nothing twice sees no jump
# says: answered False, but this is a state of a good system (append, each word once): No reader saw the value of a key go back
def steady(seen):
    return len({(word, count) for word, count in seen}) == len(seen)
