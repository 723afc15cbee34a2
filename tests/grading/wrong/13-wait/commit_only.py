# misconception: a record waits only while its own commit runs
# says: waits(2, 0.5) answered [0.5, 0.5]
def waits(interval, commit):
    return [commit, commit]
