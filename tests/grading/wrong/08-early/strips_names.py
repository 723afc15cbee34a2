# misconception: blanks around a name mean nothing
# says: clean([[0, 'stream']], {'stream': 'open', ' stream': 'aborted'}) answered False, but no row was read of a transaction that is aborted.
def clean(read, ends):
    stands = {name.strip(): how for name, how in ends.items()}
    return not any(name and stands[name.strip()] == "aborted" for _, name in read)
