# misconception: a price is valid from the moment after it begins
# says: At 5 the price was 11
def price(order, versions):
    return max(each for each in versions if each[0] < max(order["at"], 1))[1]
