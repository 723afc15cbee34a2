# misconception: a crash aborts the transaction anyway
# says: transaction_timeout(2, 1, 0, 2, 0) answered 4, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * max(interval, checkpoint + pause) + checkpoint + 1
