# misconception: a number fits into sixteen bits
# says: (numbers 65536 apart)
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return sorted(each % 2**16 for each in sent) == sorted(each % 2**16 for each in there)
