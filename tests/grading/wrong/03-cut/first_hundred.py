# misconception: a snapshot has at most a hundred transfers
# says: (one in the middle is gone)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return sorted(sent)[:100] == sorted(there)[:100]
