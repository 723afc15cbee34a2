# misconception: a checkpoint is over before the next one is due
# says: transaction_timeout(10, 25, 2, 0) answered 81
def transaction_timeout(interval, checkpoint, tolerated, downtime):
    return (tolerated + 1) * interval + 2 * checkpoint + downtime + 1
