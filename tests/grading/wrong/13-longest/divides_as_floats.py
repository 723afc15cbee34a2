# misconception: a quotient is exact as a floating-point number
# says: answered 1234568, but the right answer is 1234567.
def longest(job):
    most = min(job["latency"] - job["commit"], int(job["again"] / job["rate"]), job["timeout"] - job["commit"] - 1)
    return most if most >= 1 else None
