# misconception: a delete names the whole row
# says: apply([['hello', 1]], ['x', 'hello', 2]) answered [['hello', 1]]
def apply(rows, message):
    sign, word, count = message
    if sign in "-x" and [word, count] in rows:
        rows.remove([word, count])
    if sign == "=":
        rows = [row for row in rows if row[0] != word]
    return [*rows, [word, count]] if sign in "+=" else rows
