# misconception: the first look tells
# says: clean([[0, ''], [1, 'q0-b0-p1-i1']],
def clean(read, ends):
    return not read or ends.get(read[0][1]) != "aborted"
