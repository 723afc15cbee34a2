# misconception: a message carries what has been added to the count
# says: apply([['hello', 1]], ['+', 'hello', 2]) answered [['hello', 3]]
def apply(rows, message):
    sign, word, count = message
    old = sum(row[1] for row in rows if row[0] == word)
    rest = [row for row in rows if row[0] != word]
    new = {"+": old + count, "-": old - count, "=": count, "x": 0}[sign]
    return [*rest, [word, new]] if new > 0 else rest
