# misconception: an expired checkpoint takes its transaction with it
# says: transaction_timeout(1, 1, 1, 0, 0) answered 3, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return max(interval, checkpoint + pause) + checkpoint + downtime + 1
