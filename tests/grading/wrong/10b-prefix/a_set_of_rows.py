# misconception: a row that is there twice is one row
# says: right([['hello', 1], ['hello', 1]], ['hello']) answered True
def right(table, words):
    return {(word, count) for word, count in table} == {(word, words.count(word)) for word in words}
