# misconception: every record waits for the whole interval
# says: waits(2, 0.5) answered [2.5, 2.5]
def waits(interval, commit):
    return [interval + commit, interval + commit]
