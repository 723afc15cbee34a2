# misconception: aborted records are only marked
# says: visible([['write', 'a'], ['abort', 'a']]) answered [0]
def visible(log):
    found = []
    for offset, (what, name) in enumerate(log):
        ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
        if what == "write" and not ends:
            return found
        if what in ("plain", "write"):
            found.append(offset)
    return found
