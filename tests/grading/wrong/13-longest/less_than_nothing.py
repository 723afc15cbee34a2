# misconception: a limit that nothing keeps allows an interval of 0
# says: answered -2, but the right answer is None
def longest(job):
    return min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1) or None
