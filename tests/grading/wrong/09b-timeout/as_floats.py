# misconception: a floating-point number holds every number of ticks
# says: transaction_timeout(5, 2, 1, 1152921504606846977, 0)
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return int(float(tolerated + 1) * max(interval, checkpoint + pause) + checkpoint + downtime + 1)
