# misconception: what comes again in the end was right to be read
# says: this does not hold there (an open table)
def clean(read, ends):
    good = {offset for offset, transaction in read if ends.get(transaction) != "aborted"}
    return all(offset in good for offset, _ in read)
