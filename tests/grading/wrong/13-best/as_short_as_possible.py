# misconception: what is read again costs, so the shortest interval costs least
# says: best_interval(0.5, 86400) answered 0.5
def best_interval(cost, between):
    return cost
