# misconception: a price that is valid is not older than a day
# says: price({'at': 8638}, [[0, 10]]) returned None
def price(order, versions):
    at = order["at"]
    best = None
    for begin, cost in versions:
        if at - 1440 <= begin <= at and (best is None or begin > best[0]):
            best = (begin, cost)
    return best[1] if best else None
