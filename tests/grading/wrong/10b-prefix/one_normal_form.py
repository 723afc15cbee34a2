# misconception: words that a reader sees as one are one
# says: right([['cafe\u0301', 1]], ['café']) answered True
from collections import Counter
from unicodedata import normalize


def right(table, words):
    return sorted([normalize("NFC", word), count] for word, count in table) == sorted(map(list, Counter(words).items()))
