# misconception: a checkpoint is over before the next one is due
# says: transaction_timeout(10, 25, 2, 0, 0) answered 81
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * (interval + pause) + 2 * checkpoint + downtime + 1
