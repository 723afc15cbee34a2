# misconception: a transaction is open from one checkpoint to the next
# says: transaction_timeout(2, 1, 0, 0, 0) answered 2, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return interval
