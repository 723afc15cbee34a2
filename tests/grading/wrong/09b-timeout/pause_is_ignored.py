# misconception: a pause makes no transaction longer
# says: transaction_timeout(12, 4, 0, 0, 20) answered 17
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (tolerated + 1) * max(interval, checkpoint) + checkpoint + downtime + 1
