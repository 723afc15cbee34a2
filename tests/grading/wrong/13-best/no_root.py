# misconception: twice the cost for each crash
# says: best_interval(0.5, 86400) answered 86400.0, which
def best_interval(cost, between):
    return 2 * cost * between
