# misconception: upper and lower case make no other word
# says: ['-', 'hello', 1]) answered [['HELLO', 1], ['hello ', 1]
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]

    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if w.lower() == word.lower() and c == count:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if w != word]
    return [*rest, [word, count]] if sign == "=" else rest
