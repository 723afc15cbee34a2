# misconception: a capital letter makes no other step
# says: although number 1040 of the journal is the step mail, not MAIL
def next_action(step, journal, here, reply, now):
    entries = [entry for entry in journal if entry[0] == step["number"]]
    if any(entry[1].casefold() != step["name"].casefold() for entry in entries):
        return ["refuse"]
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
