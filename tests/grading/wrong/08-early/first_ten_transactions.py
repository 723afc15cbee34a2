# misconception: a job has at most ten transactions
# says: clean answered True, but row 1 of 2100 was read of transaction 2100 of 2100, which is aborted.
def clean(read, ends):
    first = dict([*ends.items()][:10])
    return not any(first.get(name) == "aborted" for _, name in read)
