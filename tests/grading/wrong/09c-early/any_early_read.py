# misconception: whoever reads early reads wrong
# says: answered False, and nothing is wrong with this state (an open table
def clean(read, ends):
    return all(transaction == "" for _, transaction in read)
