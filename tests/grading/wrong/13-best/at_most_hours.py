# misconception: an interval is three hours at most
# says: best_interval(300, 2600000) answered 10000, which loses 3.2 % of the time; 1.5 % is possible.
def best_interval(cost, between):
    return min((2 * cost * between) ** 0.5, 10_000)
