# misconception: a snapshot with the right sum is right
# says: [8], 'channels':
def consistent(parts):
    total = sum(part["balance"] + 100 * len(part["channels"]) for part in parts)
    return total == 200 * len(parts)
