# misconception: case means nothing in a name
# says: clean([[0, 'stream']], {'stream': 'open', 'STREAM': 'aborted'}) answered False, but no row was read of a transaction that is aborted.
def clean(read, ends):
    stands = {name.lower(): how for name, how in ends.items()}
    return not any(name and stands[name.lower()] == "aborted" for _, name in read)
