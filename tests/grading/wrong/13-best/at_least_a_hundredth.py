# misconception: an interval is a hundredth of a second at least
# says: best_interval(1e-05, 0.5) answered 0.01, which loses 1.1 % of the time; 0.6 % is possible.
def best_interval(cost, between):
    return max((2 * cost * between) ** 0.5, 0.01)
