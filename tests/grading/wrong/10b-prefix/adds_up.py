# misconception: a table is right if its counts add up
# says: right([['hello', 1], ['hello', 1]], ['hello', 'hello']) answered True
def right(table, words):
    return sum(count for _, count in table) == len(words)
