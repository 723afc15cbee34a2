# misconception: only what a reader has last counts
# says: answered True
def clean(read, ends):
    return not read or ends.get(read[-1][1]) != "aborted"
