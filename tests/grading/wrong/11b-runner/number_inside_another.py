# misconception: a number that contains the digits is the same number
# says: answered ['refuse'], although the journal has no step with another name under number 0
def next_action(step, journal, here, reply, now):
    entries = [entry for entry in journal if str(step["number"]) in str(entry[0])]
    if any(entry[1] != step["name"] for entry in entries):
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
