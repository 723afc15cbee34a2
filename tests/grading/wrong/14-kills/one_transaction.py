# misconception: every BEGIN after the first means nothing
# says: guarantee(['BEGIN', 'COMMIT', 'BEGIN'
from collections import Counter


def call(steps, stored):
    open_ = None
    for place, r in steps:
        now = stored if open_ is None else open_
        if r == "ROW":
            now[place] += 1
        elif r == "MARK":
            now["mark"] = 1
        elif r == "LOOK" and now["mark"]:
            return stored
        elif r == "BEGIN" and all(x != "BEGIN" for _, x in steps[:place]):
            open_ = Counter(stored)
        elif r == "COMMIT":
            stored, open_ = (stored if open_ is None else open_), None
    return stored


def guarantee(requests):
    steps = list(enumerate(requests))
    rows = [p for p, r in steps if r == "ROW"]
    ends = [call(steps, Counter(call(steps[:k], Counter()))) for k in range(len(steps) + 1)]
    lost = any(e[r] == 0 for e in ends for r in rows)
    twice = any(e[r] > 1 for e in ends for r in rows)
    return [["exactly-once", "at-least-once"], ["at-most-once", "none"]][lost][twice]
