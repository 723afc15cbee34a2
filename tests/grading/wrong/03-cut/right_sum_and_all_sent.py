# misconception: a right sum proves the channels, and receipts are all there is to check besides
# says: 'sent': [8], 'received': [], 'channels': [0]}]) answered True
def consistent(parts):
    sent = {number for part in parts for number in part["sent"]}
    total = sum(part["balance"] + 100 * len(part["channels"]) for part in parts)
    return total == 200 * len(parts) and all(number in sent for part in parts for number in part["received"])
