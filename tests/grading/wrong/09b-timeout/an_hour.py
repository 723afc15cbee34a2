# misconception: longer is safer
# says: transaction_timeout(2, 1, 0, 0, 0) answered 3600, and 1799 loses nothing either:
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return 3600
