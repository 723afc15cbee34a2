# misconception: the version nearest in time is valid
# says: At 4 the price was 10
def price(order, versions):
    return min(versions, key=lambda each: abs(each[0] - order["at"]))[1]
