# misconception: counts are equal if their last three digits are
# says: apply([['hello', 7]], ['-', 'hello', 900
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]

    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if w == word and c % 1000 == count % 1000:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if w != word]
    return [*rest, [word, count]] if sign == "=" else rest
