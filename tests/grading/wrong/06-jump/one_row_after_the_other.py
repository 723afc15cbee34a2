# misconception: Python calls itself as often as there are rows
# says: [['tmccok', 1], ['tmccok', 2], ['tmccok', 3], ['tmccok', 4], ['tmccok', 5], ['tmccok', 6],
def steady(seen, largest=()):
    if not seen:
        return True
    (word, count), *rest = seen
    before = dict(largest)
    return count >= before.get(word, 0) and steady(rest, [*{**before, word: count}.items()])
