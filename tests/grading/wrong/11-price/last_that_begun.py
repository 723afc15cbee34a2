# misconception: the list is in the order of time
# says: price({'at': 6}, [[5, 11], [0, 10]]) answered 10. At 6 the price was 11, whi
def price(order, versions):
    return [each for each in versions if each[0] <= order["at"]][-1][1]
