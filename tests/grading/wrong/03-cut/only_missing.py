# misconception: it is enough that nothing is missing
# says: [0], 'channels':
def consistent(parts):
    there = {number for part in parts for number in part["received"] + part["channels"]}
    return all(number in there for part in parts for number in part["sent"])
