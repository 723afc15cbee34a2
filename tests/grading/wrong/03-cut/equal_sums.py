# misconception: as many transfers, with an equal sum of their numbers, are the same transfers
# says: (other transfers, with an equal sum)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return (len(sent), sum(sent)) == (len(there), sum(there))
