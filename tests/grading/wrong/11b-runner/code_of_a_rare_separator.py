# misconception: nobody writes <~> into a name, and hexadecimal digits hide it
# says: The key of step 1040 of 'order' is '6f726465723c7e3e6d61696c3c7e3e31303430' if i
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
    return ["send", f"{step['run']}<~>{step['name']}<~>{step['number']}".encode().hex()]
