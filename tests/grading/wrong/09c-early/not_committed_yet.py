# misconception: what is not committed is as good as aborted
# says: answered False, and nothing is wrong
def clean(read, ends):
    return all(ends.get(transaction, "committed") == "committed" for _, transaction in read)
