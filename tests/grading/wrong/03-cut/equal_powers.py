# misconception: numbers with equal sums of powers are the same numbers
# says: (the same sums of powers)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return all(sum(each**power for each in sent) == sum(each**power for each in there) for power in range(5))
