# misconception: a checkpoint expires or the job is down, never both
# says: transaction_timeout(7, 3, 3, 20) answered 32
def transaction_timeout(interval, checkpoint, tolerated, downtime):
    return max(interval, checkpoint) + checkpoint + max(tolerated * max(interval, checkpoint), downtime) + 1
