# misconception: a marker comes within a thousand entries
# says: ['p...) answered []: offset 0 is missing
def visible(log):
    log = [(what, name) for what, name in log]
    found = []
    for offset, (what, name) in enumerate(log):
        if what == "plain":
            found.append(offset)
        if what == "write":
            ends = [each for each, whose in log[offset : offset + 1000] if whose == name and each != "write"]
            if not ends:
                return found
            if ends[0] == "commit":
                found.append(offset)
    return found
