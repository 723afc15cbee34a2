# misconception: only what a reader has last counts
# says: clean([[0, 'q0-b0-p1-i1'], [1, '']],
def clean(read, ends):
    return not read or ends.get(read[-1][1]) != "aborted"
