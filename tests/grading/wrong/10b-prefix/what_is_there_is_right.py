# misconception: no wrong row is enough; none may be missing is forgotten
# says: right([], ['hello']) answered True
def right(table, words):
    return all(count == words.count(word) for word, count in table)
