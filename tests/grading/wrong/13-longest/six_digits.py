# misconception: six digits are enough for an interval
# says: answered 1234570, but the right answer is 1234567.
def longest(job):
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    most = int(float(f"{most:.6g}"))
    return most if most >= 1 else None
