# misconception: no interval is longer than a million seconds
# says: answered 1000000, but the right answer is 1234567.
def longest(job):
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    most = min(most, 1_000_000)
    return most if most >= 1 else None
