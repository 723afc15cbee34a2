# misconception: a snapshot has at most a thousand transfers
# says: (one of the last is gone)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return sorted(sent)[:1000] == sorted(there)[:1000]
