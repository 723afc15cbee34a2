# misconception: a table is right if no word has two rows
# says: right([['hello', 1]], ['hello', 'hello']) answered True
def right(table, words):
    return len({word for word, _ in table}) == len(table)
