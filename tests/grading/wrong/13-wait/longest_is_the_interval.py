# misconception: who waits longest waits for the intervals, and the commits are over by then
# says: waits([1, 0.2], [2, 0.5]) answered [2.2, 3], but
def waits(first, second):
    interval, commit = first[0] + second[0], first[1] + second[1]
    return [interval / 2 + commit, interval]
