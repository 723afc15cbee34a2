# misconception: a log has at most a thousand entries
# says: offset 1000 is missing
def visible(log):
    log = [(what, name) for what, name in log]
    found = []
    for offset, (what, name) in enumerate(log[:1000]):
        if what == "plain":
            found.append(offset)
        if what == "write":
            ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
            if not ends:
                return found
            if ends[0] == "commit":
                found.append(offset)
    return found
