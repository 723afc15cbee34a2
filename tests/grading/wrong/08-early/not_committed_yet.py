# misconception: what is not committed is as good as aborted
# says: nothing is wrong with this state (any two)
def clean(read, ends):
    return all(ends.get(transaction, "committed") == "committed" for _, transaction in read)
