# misconception: an interval is at least a second
# says: best_interval(0.01, 10) answered 1.0
def best_interval(cost, between):
    return max(1.0, (2 * cost * between) ** 0.5)
