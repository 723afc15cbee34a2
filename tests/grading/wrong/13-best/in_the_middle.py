# misconception: the best is in the middle between both times
# says: best_interval(0.5, 86400) answered 43200
def best_interval(cost, between):
    return (cost + between) / 2
