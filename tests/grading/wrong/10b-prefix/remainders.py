# misconception: counts are equal if their last digits are
# says: (a hundred words)
def right(table, words):
    counted = [[word, words.count(word) % 100] for word in set(words)]
    return sorted([word, count % 100] for word, count in table) == sorted(counted)
