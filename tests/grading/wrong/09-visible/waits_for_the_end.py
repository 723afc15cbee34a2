# misconception: while anything is open, a reader gets nothing
# says: visible([['plain', ''], ['write', 'a']]) answered []
def visible(log):
    state = {name: what for what, name in log if what != "plain"}
    if "write" in state.values():
        return []
    found = []
    for offset, (what, name) in enumerate(log):
        ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
        if what == "plain" or (what == "write" and ends[0] == "commit"):
            found.append(offset)
    return found
