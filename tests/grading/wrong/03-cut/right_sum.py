# misconception: a snapshot with the right sum is right
# says: Transfer 21.1 is received in the copy of process 1 and not sent
def consistent(parts):
    total = sum(part["balance"] + 100 * len(part["channels"]) for part in parts)
    return total == 200 * len(parts)
