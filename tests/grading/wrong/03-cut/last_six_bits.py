# misconception: the last bits of a number tell transfers apart
# says: (numbers 64000 apart)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return sorted(each & 63 for each in sent) == sorted(each & 63 for each in there)
