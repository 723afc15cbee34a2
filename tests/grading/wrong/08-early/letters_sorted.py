# misconception: the letters of a name tell it apart, in any order
# says: clean([[0, ' stream']], {' stream': 'open', 'stream ': 'aborted'}) answered False, but no row was read of a transaction that is aborted.
def clean(read, ends):
    stands = {"".join(sorted(name)): how for name, how in ends.items()}
    return not any(name and stands["".join(sorted(name))] == "aborted" for _, name in read)
