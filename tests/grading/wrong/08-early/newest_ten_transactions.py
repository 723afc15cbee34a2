# misconception: only the newest ten transactions can be aborted
# says: [[1000, '1']], {'1': 'aborted', '01': 'open', '1.0': 'open', '+1': 'open', '1e0': 'open',
def clean(read, ends):
    newest = dict([*ends.items()][-10:])
    return not any(newest.get(name) == "aborted" for _, name in read)
