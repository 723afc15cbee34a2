# misconception: every record waits for both whole intervals
# says: waits([1, 0.2], [2, 0.5]) answered [3.7, 3.7], but
def waits(first, second):
    interval, commit = first[0] + second[0], first[1] + second[1]
    return [interval + commit, interval + commit]
