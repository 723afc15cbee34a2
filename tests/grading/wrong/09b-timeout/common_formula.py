# misconception: the formula that is commonly given
# says: transaction_timeout(1, 3, 0, 0, 0) answered 5, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * (interval + checkpoint + pause) + downtime + 1
