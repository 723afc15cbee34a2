# misconception: only the first read of a row counts
# says: [[1000, 'STREAM'], [1000, ''], [1000, 'stream']], {'stream': 'aborted', 'STREAM': 'open',
def clean(read, ends):
    first = {}
    for offset, name in read:
        first.setdefault(offset, name)
    return not any(name and ends[name] == "aborted" for name in first.values())
