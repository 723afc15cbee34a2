# misconception: a price of zero is no price
# says: price({'at': 4294967293}, [[0, 98765432101], [4294967292, 0]]) answered 98765432101. A
def price(order, versions):
    begun = [version for version in versions if version[0] <= order["at"] and version[1]]
    return max(begun)[1]
