# misconception: four digits are enough for a price
# says: price({'at': 1}, [[0, 98765432101]]) answered 98770000000. At 1 the price was
def price(order, versions):
    begun = [version for version in versions if version[0] <= order["at"]]
    return int(float(f"{max(begun)[1]:.4g}"))
