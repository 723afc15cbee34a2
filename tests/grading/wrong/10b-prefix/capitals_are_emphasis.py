# misconception: a word in capitals is the same word
# says: right([['HELLO', 1]], ['hello']) answered True
from collections import Counter


def right(table, words):
    counts = Counter()
    for word, count in table:
        counts[word.lower() if word.isupper() else word] += count
    return counts == Counter(words) and len(table) == len(counts)
