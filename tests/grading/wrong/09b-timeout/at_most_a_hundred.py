# misconception: nobody tolerates more than a hundred checkpoints
# says: transaction_timeout(5, 2, 1100, 3, 0)
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (min(tolerated, 100) + 1) * max(interval, checkpoint + pause) + checkpoint + downtime + 1
