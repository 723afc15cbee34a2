# misconception: after a crash a whole interval is read again
# says: best_interval(0.5, 86400) answered 207
def best_interval(cost, between):
    return (cost * between) ** 0.5
