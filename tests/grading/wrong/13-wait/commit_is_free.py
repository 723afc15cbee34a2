# misconception: a commit takes no time
# says: waits([1, 0.2], [2, 0.5]) answered [1.5, 3], but
def waits(first, second):
    interval = first[0] + second[0]
    return [interval / 2, interval]
