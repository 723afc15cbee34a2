# misconception: a crash aborts the transaction anyway
# says: transaction_timeout(2, 1, 0, 2) answered 4, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime):
    return (tolerated + 1) * max(interval, checkpoint) + checkpoint + 1
