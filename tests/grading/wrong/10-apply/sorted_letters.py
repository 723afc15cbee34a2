# misconception: words of the same letters are the same
# says: apply([['hello', 1], ['Hello', 1], ['HEL
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]

    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if sorted(w) == sorted(word) and c == count:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if sorted(w) != sorted(word)]
    return [*rest, [word, count]] if sign == "=" else rest
