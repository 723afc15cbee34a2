# misconception: a price never changes
# says: At 6 the price was 11
def price(order, versions):
    return versions[0][1]
