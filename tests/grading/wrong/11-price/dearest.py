# misconception: the largest price is the newest
# says: [4, 12], [9, 8]]) answered 12
def price(order, versions):
    return max(each[1] for each in versions if each[0] <= order["at"])
