# misconception: the jobs wait side by side, so only the slower one counts
# says: waits([1, 0.2], [2, 0.5]) answered [1.5, 2.5], but
def waits(first, second):
    interval, commit = max(first, second)
    return [interval / 2 + commit, interval + commit]
