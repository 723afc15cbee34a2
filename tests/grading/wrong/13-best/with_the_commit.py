# misconception: the commit comes in addition
# says: which loses 45.6 % of the time; 44.7 % is possible
def best_interval(cost, between):
    return (2 * cost * between) ** 0.5 + cost
