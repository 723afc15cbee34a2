# misconception: money goes from the first process to the second
# says: 'channels': []}, {'balance': 100, 'sent': [8], 'received': [], 'channels': []}
def consistent(parts):
    return sorted(parts[0]["sent"]) == sorted(parts[1]["received"] + parts[1]["channels"])
