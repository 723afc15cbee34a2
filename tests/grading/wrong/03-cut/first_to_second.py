# misconception: money goes from the first process to the second
# says: [8], 'received':
def consistent(parts):
    return sorted(parts[0]["sent"]) == sorted(parts[1]["received"] + parts[1]["channels"])
