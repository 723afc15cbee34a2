# misconception: the number of a step says which one it is
# says: answered ['send', 'run 7 / 0'], although number 0 of the journal
def next_action(step, journal, here, reply, now):
    entries = [entry for entry in journal if entry[0] == step["number"]]
    results = [entry[3] for entry in entries if entry[2] == "done"]
    if results:
        return ["return", results[0]]
    if reply:
        return ["done", reply[0]]
    starts = [entry[3] for entry in entries]
    if not starts:
        return ["start"]
    if here != ["start"] and now - starts[0] >= step["keeps"]:
        return ["stop"]
    return ["send", f"{step['run']} / {step['number']}"]
