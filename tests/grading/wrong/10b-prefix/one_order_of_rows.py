# misconception: the rows of a table come in the order of their words
# says: right([['world', 1], ['hello', 1]], ['hello', 'world']) answered False
from collections import Counter


def right(table, words):
    return table == [[word, count] for word, count in sorted(Counter(words).items())]
