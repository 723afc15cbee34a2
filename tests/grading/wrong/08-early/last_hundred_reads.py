# misconception: what was read long ago does no harm now
# says: (many rows)
def clean(read, ends):
    return not any(name and ends[name] == "aborted" for _, name in read[-100:])
