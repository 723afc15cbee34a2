# misconception: what stands last in the list is valid
# says: At 1 the price was 10
def price(order, versions):
    return versions[-1][1]
