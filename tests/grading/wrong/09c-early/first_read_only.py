# misconception: the first look tells
# says: answered True
def clean(read, ends):
    return not read or ends.get(read[0][1]) != "aborted"
