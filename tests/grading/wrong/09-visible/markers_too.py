# misconception: a marker is a record
# says: answered [0, 1]
def visible(log):
    found = []
    for offset, (what, name) in enumerate(log):
        ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
        if what == "write" and not ends:
            return found
        if what != "write" or ends[0] == "commit":
            found.append(offset)
    return found
