# misconception: the first hundred reads show the harm
# says: clean answered True, but row 2100 of 2100 was read of transaction 1 of 2100, which is aborted.
def clean(read, ends):
    return not any(name and ends[name] == "aborted" for _, name in read[:100])
