# misconception: from a second on, whole seconds are exact enough
# says: best_interval(0.002, 800) answered 1, which loses 0.3 % of the time; 0.2 % is possible.
def best_interval(cost, between):
    return int((2 * cost * between) ** 0.5) or (2 * cost * between) ** 0.5
