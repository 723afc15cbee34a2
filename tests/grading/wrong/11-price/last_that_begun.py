# misconception: the list is in the order of time
# says: [9, 8], [4, 12]]) answered 12
def price(order, versions):
    return [each for each in versions if each[0] <= order["at"]][-1][1]
