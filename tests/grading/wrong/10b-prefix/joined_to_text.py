# misconception: rows are equal if their texts are, one after the other
# says: right([['a1', 1]], ['a', 'a'
def right(table, words):
    def text(rows):
        return "".join(sorted(f"{word}{count}" for word, count in rows))

    return text(table) == text((word, words.count(word)) for word in set(words))
