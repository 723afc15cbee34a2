# misconception: the last marker of a name decides about all its records
# says: answered [0, 2]
def visible(log):
    ends = {name: what for what, name in log if what in ("commit", "abort")}
    found = []
    for offset, (what, name) in enumerate(log):
        if what == "write" and name not in ends:
            return found
        if what == "plain" or (what == "write" and ends[name] == "commit"):
            found.append(offset)
    return found
