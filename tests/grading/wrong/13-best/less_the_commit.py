# misconception: the commit itself is part of the interval
# says: which loses 46.2 % of the time; 44.7 % is possible
def best_interval(cost, between):
    return (2 * cost * between) ** 0.5 - cost
