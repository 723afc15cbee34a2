# misconception: the longest wait is twice the typical one
# says: waits(2, 0.5) answered [1.5, 3.0]
def waits(interval, commit):
    return [interval / 2 + commit, interval + 2 * commit]
