# misconception: a commit takes no time
# says: waits(2, 0.5) answered [1.0, 2]
def waits(interval, commit):
    return [interval / 2, interval]
