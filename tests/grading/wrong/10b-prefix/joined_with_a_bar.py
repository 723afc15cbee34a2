# misconception: rows are equal if their texts are, with a bar between
# says: right([['x 1|y', 2]],
def right(table, words):
    return "|".join(sorted(f"{w} {c}" for w, c in table)) == "|".join(
        sorted(f"{w} {words.count(w)}" for w in set(words))
    )
