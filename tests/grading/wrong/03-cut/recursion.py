# misconception: a function may call itself once for each transfer
# says: RecursionError
def same(one, other):
    return one[:1] == other[:1] and (not one or same(one[1:], other[1:]))


def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return same(sorted(sent), sorted(there))
