# misconception: a table is a set, so one retraction takes back all that is equal
# says: apply([['hello', 1], ['hello', 1]], ['-', 'hello', 1]) answered []
def apply(rows, message):
    sign, word, count = message
    if sign == "-":
        rows = [row for row in rows if row != [word, count]]
    if sign in "=x":
        rows = [row for row in rows if row[0] != word]
    return [*rows, [word, count]] if sign in "+=" else rows
