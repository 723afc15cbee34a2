# misconception: a price never changes
# says: price({'at': 6}, [[0, 10], [5, 11]]) answered 10.
def price(order, versions):
    return versions[0][1]
