# misconception: the typical record waits for half of the commits, too
# says: waits([1, 0.2], [2, 0.5]) answered [1.85, 3.7], but
def waits(first, second):
    interval, commit = first[0] + second[0], first[1] + second[1]
    return [(interval + commit) / 2, interval + commit]
