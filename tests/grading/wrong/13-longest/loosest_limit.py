# misconception: one limit that is kept is enough
# says: 'timeout': 600}) answered 597
def longest(job):
    most = max(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    return most if most >= 1 else None
