# misconception: money is in accounts
# says: [0]}]) answered False, but this is a state of a good system (markers):
def consistent(parts):
    return sum(part["balance"] for part in parts) == 200 * len(parts)
