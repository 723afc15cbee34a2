# misconception: what is taken back has been there
# says: apply([], ['-', 'hello', 1])
def apply(rows, message):
    sign, word, count = message
    if sign == "-":
        rows.remove([word, count])
    if sign in "=x":
        rows = [row for row in rows if row[0] != word]
    return [*rows, [word, count]] if sign in "+=" else rows
