# misconception: who waits longest waits for the interval, and its commit is over by then
# says: waits(2, 0.5) answered [1.5, 2]
def waits(interval, commit):
    return [interval / 2 + commit, interval]
