# misconception: some interval is always possible
# says: answered 0, but the right answer is None
def longest(job):
    return min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
