# misconception: nobody writes a character reference into the name of a run
# says: answered ['send', 'order &#233;-1040']
def next_action(step, journal, here, reply, now):
    entries = [entry for entry in journal if entry[0] == step["number"]]
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
    return ["send", step["run"].encode("ascii", "xmlcharrefreplace").decode() + "-" + str(step["number"])]
