# misconception: no interval is longer than an hour
# says: answered 3600, but the right answer is 199998
def longest(job):
    best = None
    for interval in range(1, 3601):
        if interval + job["commit"] > job["latency"]:
            break
        if interval * job["rate"] > job["again"] or interval + job["commit"] >= job["timeout"]:
            break
        best = interval
    return best
