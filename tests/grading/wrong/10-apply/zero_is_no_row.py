# misconception: a row with the count 0 says nothing
# says: apply([['hello', 0]], ['+', 'hello', 0])
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]
    rows = [r for r in rows if r[1]]
    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if w == word and c == count:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if w != word]
    return [*rest, [word, count]] if sign == "=" else rest
