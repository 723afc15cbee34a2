# misconception: each tolerated checkpoint can meet a downtime of its own
# says: transaction_timeout(7, 3, 3, 20, 0) answered 112,
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * (max(interval, checkpoint + pause) + downtime) + checkpoint + 1
