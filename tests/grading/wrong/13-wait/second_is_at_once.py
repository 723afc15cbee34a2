# misconception: the second job has the record as soon as the first one has it
# says: waits([1, 0.2], [2, 0.5]) answered [0.7, 1.2], but
def waits(first, second):
    interval, commit = first
    return [interval / 2 + commit, interval + commit]
