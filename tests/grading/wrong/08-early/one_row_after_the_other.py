# misconception: Python calls itself as often as there are rows
# says: [[0, ''], [1, ''], [2, ''], [3, ''], [4, ''], [5, ''], [6, ''], [7, ''], [8, ''], [9, ''],
def clean(read, ends):
    return not read or (ends.get(read[0][1]) != "aborted" and clean(read[1:], ends))
