# misconception: an abort ends the log for a reader
# says: ['abort', 'a']]) answered []
def visible(log):
    found = []
    for offset, (what, name) in enumerate(log):
        ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
        if what == "write" and ends[:1] != ["commit"]:
            return found
        if what in ("plain", "write"):
            found.append(offset)
    return found
