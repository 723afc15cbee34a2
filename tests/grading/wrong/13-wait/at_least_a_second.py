# misconception: an interval is at least a second
# says: answered [8.0, 10], but
def waits(first, second):
    first, second = ([max(1, interval), commit] for interval, commit in (first, second))
    return [(first[0] + second[0]) / 2 + first[1] + second[1], sum(first + second)]
