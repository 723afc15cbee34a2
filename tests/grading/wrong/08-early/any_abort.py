# misconception: an aborted transaction is a harm by itself
# says: this is a state of a good system (hidden rows)
def clean(read, ends):
    return "aborted" not in ends.values()
