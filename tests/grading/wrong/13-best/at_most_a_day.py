# misconception: nobody waits for more than a day
# says: best_interval(3600, 2600000) answered 86400.0
def best_interval(cost, between):
    return min((2 * cost * between) ** 0.5, 86_400.0)
