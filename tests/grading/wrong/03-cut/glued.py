# misconception: sorted numbers may be written one after the other
# says: (the same digits)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return "".join(map(str, sorted(sent))) == "".join(map(str, sorted(there)))
