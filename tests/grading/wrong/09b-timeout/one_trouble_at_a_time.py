# misconception: a checkpoint expires or the job is down, never both
# says: transaction_timeout(7, 3, 3, 20, 0) answered 32
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    return (
        max(interval, checkpoint + pause)
        + checkpoint
        + max(tolerated * max(interval, checkpoint + pause), downtime)
        + 1
    )
