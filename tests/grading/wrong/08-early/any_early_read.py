# misconception: whoever reads early reads wrong
# says: this is a state of a good system (an open table, and no crash)
def clean(read, ends):
    return all(transaction == "" for _, transaction in read)
