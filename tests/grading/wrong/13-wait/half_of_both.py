# misconception: the typical record waits for half of the commit, too
# says: waits(2, 0.5) answered [1.25, 2.5]
def waits(interval, commit):
    return [(interval + commit) / 2, interval + commit]
