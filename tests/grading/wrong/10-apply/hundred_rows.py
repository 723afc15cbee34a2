# misconception: a table has at most a hundred rows
# says: 100 missing:
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]
    rows = rows[:100]
    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if w == word and c == count:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if w != word]
    return [*rest, [word, count]] if sign == "=" else rest
