# misconception: where nothing fits, the shortest interval has to do
# says: answered 1, but the right answer is None
def longest(job):
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    return max(most, 1)
