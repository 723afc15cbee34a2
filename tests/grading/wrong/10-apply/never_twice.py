# misconception: a row that is there already need not be added again
# says: apply([['hello', 1]], ['+', 'hello', 1]) answered [['hello', 1]]
def apply(rows, message):
    sign, word, count = message
    if sign == "-" and [word, count] in rows:
        rows.remove([word, count])
    if sign in "=x":
        rows = [row for row in rows if row[0] != word]
    if sign in "+=" and [word, count] not in rows:
        rows.append([word, count])
    return rows
