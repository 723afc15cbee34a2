# misconception: of two rows of a word a reader takes the last
# says: right([['hello', 2], ['hello', 1]], ['hello']) answered True
def right(table, words):
    return dict(table) == {word: words.count(word) for word in words}
