# misconception: a usual value is good for everybody
# says: best_interval(0.5, 86400) answered 10,
def best_interval(cost, between):
    return 10
