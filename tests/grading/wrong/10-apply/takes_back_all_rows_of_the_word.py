# misconception: a retraction goes by the key
# says: apply([['hello', 1], ['hello', 2]], ['-', 'hello', 2]) answered []
def apply(rows, message):
    sign, word, count = message
    if sign in "-=x":
        rows = [row for row in rows if row[0] != word]
    return [*rows, [word, count]] if sign in "+=" else rows
