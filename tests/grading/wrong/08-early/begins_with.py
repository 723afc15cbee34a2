# misconception: a transaction's name is never the beginning of another one
# says: 'q0-b0-p0-i1-a2': 'aborted'}) answered False
def clean(read, ends):
    return not any(name and other.startswith(name) and ends[other] == "aborted" for _, name in read for other in ends)
