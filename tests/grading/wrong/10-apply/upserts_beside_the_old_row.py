# misconception: an upsert is an insert
# says: apply([['hello', 1]], ['=', 'hello', 1]) answered [['hello', 1], ['hello', 1]]
def apply(rows, message):
    sign, word, count = message
    if sign == "-" and [word, count] in rows:
        rows.remove([word, count])
    if sign == "x":
        rows = [row for row in rows if row[0] != word]
    return [*rows, [word, count]] if sign in "+=" else rows
