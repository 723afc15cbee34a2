# misconception: words that a reader sees as one are one
# says: apply([['cafe\u0301', 1]], ['-', 'café',
def apply(rows, message):
    sign, word, count = message
    rows = [list(row) for row in rows]
    import unicodedata

    def n(t):
        return unicodedata.normalize("NFKC", t)

    if sign == "+":
        return [*rows, [word, count]]
    if sign == "-":
        for i, (w, c) in enumerate(rows):
            if n(w) == n(word) and c == count:
                return rows[:i] + rows[i + 1 :]
        return rows
    rest = [[w, c] for w, c in rows if n(w) != n(word)]
    return [*rest, [word, count]] if sign == "=" else rest
