# misconception: a word and its count, written one behind the other, name a row
# says: apply([['a', 11]], ['-', 'a1', 1]) answered []
def apply(rows, message):
    sign, word, count = message
    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for at, row in enumerate(rows):
            if f"{row[0]}{row[1]}" == f"{word}{count}":
                return rows[:at] + rows[at + 1 :]
        return rows
    rest = [row for row in rows if row[0] != word]
    return [*rest, [word, count]] if sign == "=" else rest
