# misconception: a reader waits for the interval only
# says: 'timeout': 600}) answered 12
def longest(job):
    most = min(job["latency"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    return most if most >= 1 else None
