# misconception: an interval is three hours at most
# says: best_interval(3600, 2600000) answered 10000
def best_interval(cost, between):
    return min((2 * cost * between) ** 0.5, 10_000)
