# misconception: exactly as long as it is open is long enough
# says: transaction_timeout(2, 1, 0, 0, 0) answered 3, and with that a record can be lost:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * max(interval, checkpoint + pause) + checkpoint + downtime
