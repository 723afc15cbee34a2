# misconception: a reader skips what is undecided and goes on
# says: answered [1]: offset 1 must not be there
def visible(log):
    found = []
    for offset, (what, name) in enumerate(log):
        ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
        if what == "plain" or (what == "write" and ends[:1] == ["commit"]):
            found.append(offset)
    return found
