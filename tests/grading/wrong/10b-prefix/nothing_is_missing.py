# misconception: no missing row is enough; more rows do no harm
# says: right([['hello', 1]], []) answered True
def right(table, words):
    return all([word, words.count(word)] in table for word in words)
