# misconception: numbers with an equal product are the same numbers
# says: (the same products, counted from 1)
from math import prod


def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    there = [number for part in parts for number in part["received"] + part["channels"]]
    return (len(sent), prod(each + 1 for each in sent)) == (len(there), prod(each + 1 for each in there))
