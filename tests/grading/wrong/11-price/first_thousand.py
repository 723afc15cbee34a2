# misconception: a thousand prices are all there are
# says: price({'at': 3297}, [[0, 7], [3, 8], [6, 9], [9, 10], [12, 11], [15, 12], [18, 1
def price(order, versions):
    begun = [version for version in versions[:1_000] if version[0] <= order["at"]]
    return max(begun)[1]
