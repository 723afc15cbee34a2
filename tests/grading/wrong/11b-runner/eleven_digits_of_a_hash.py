# misconception: eleven hexadecimal digits of a hash are unique
# says: Even runs with long names have short keys, for example 'c60fb023a97' and '280fe
import hashlib


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
    return ["send", hashlib.md5(f"{step['run']}/{step['number']}".encode()).hexdigest()[:11]]
