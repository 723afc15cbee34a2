# misconception: a blank at the end makes no other word
# says: right([['hello ', 1]], ['hello']) answered True
from collections import Counter


def right(table, words):
    return sorted([word.strip(), count] for word, count in table) == sorted(map(list, Counter(words).items()))
