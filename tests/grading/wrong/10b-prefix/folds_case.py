# misconception: upper and lower case make no other word
# says: right([['Hello', 1]], ['hello']) answered True
from collections import Counter


def right(table, words):
    return sorted([word.lower(), count] for word, count in table) == sorted(map(list, Counter(words).items()))
