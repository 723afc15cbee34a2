# misconception: a table has at most a hundred rows
# says: (many rows)
def right(table, words):
    counted = [[word, words.count(word)] for word in set(words)]
    return len(table) == len(counted) and sorted(table)[:100] == sorted(counted)[:100]
