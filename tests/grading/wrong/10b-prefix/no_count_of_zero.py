# misconception: a row with the count 0 says nothing
# says: but this does not hold there (any row)
def right(table, words):
    counted = [[word, words.count(word)] for word in set(words)]
    return sorted(row for row in table if row[1]) == sorted(counted)
