# misconception: what was read long ago does no harm now
# says: clean answered True, but row 1 of 2100 was read of transaction 1 of 2100, which is aborted.
def clean(read, ends):
    return not any(name and ends[name] == "aborted" for _, name in read[-100:])
