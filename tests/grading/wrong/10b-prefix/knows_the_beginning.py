# misconception: a word is known by its first letters
# says: right([['a1', 1]], ['a']) answered True
from collections import Counter


def right(table, words):
    counted = Counter(words)
    if len(table) != len(counted) or len({tuple(row) for row in table}) != len(table):
        return False
    return all(any(row[0].startswith(word) and row[1] == counted[word] for word in counted) for row in table)
