# misconception: the pause counts from the start of the checkpoint before
# says: transaction_timeout(12, 4, 0, 0, 20) answered 25
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * max(interval, checkpoint, pause) + checkpoint + downtime + 1
