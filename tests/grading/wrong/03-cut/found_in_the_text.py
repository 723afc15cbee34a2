# misconception: a number that is in the text of all places is in one of them
# says: (a number in the text of another)
def consistent(parts):
    places = " ".join(str(part["received"] + part["channels"]) for part in parts)
    sent = [number for part in parts for number in part["sent"]]
    arrived = [number for part in parts for number in part["received"] + part["channels"]]
    once = len(arrived) == len(set(arrived)) and set(arrived) <= set(sent)
    return once and all(str(number) in places for number in sent)
