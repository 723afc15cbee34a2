# misconception: a transaction is over when the interval is over
# says: 'timeout': 60}) answered 59
def longest(job):
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - 1)
    return most if most >= 1 else None
