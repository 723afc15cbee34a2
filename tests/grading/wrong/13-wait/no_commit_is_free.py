# misconception: every commit takes a second at least
# says: waits([4, 0], [2, 0]) answered [4.0, 7], but the typical wait of 2,500 arrivals is 3.00 s.
def waits(first, second):
    intervals, commits = first[0] + second[0], first[1] + second[1]
    return [intervals / 2 + (commits or 1), intervals + (commits or 1)]
