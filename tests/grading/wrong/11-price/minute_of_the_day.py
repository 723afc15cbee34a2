# misconception: a minute of the day says when a price begins
# says: price({'at': 8640}, [[0, 10], [8639, 12]]) answered 10
def price(order, versions):
    at = order["at"] % 1440
    return max(each for each in versions if each[0] % 1440 <= at)[1]
