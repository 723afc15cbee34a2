# misconception: it does not matter in how many places a transfer is
# says: 'received': [8], 'channels': [8]}, {'balance': 100, 'sent': [8]
def consistent(parts):
    sent = {number for part in parts for number in part["sent"]}
    there = {number for part in parts for number in part["received"] + part["channels"]}
    return sent == there
