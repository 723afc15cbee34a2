# misconception: commits cost, so the longest interval costs least
# says: best_interval(0.5, 86400) answered 86400, which
def best_interval(cost, between):
    return between
