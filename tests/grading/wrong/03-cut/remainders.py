# misconception: numbers with the same remainder are the same
# says: (numbers 97000 apart)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return sorted(each % 97 for each in sent) == sorted(each % 97 for each in there)
