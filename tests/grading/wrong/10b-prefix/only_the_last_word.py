# misconception: only the row of the last word can be wrong
# says: right([['world', 1]], ['hello', 'world']) answered True
def right(table, words):
    return not words or [words[-1], words.count(words[-1])] in table
