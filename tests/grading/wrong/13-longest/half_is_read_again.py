# misconception: on average half an interval is read again, so the limit is about that
# says: 'timeout': 600}) answered 51
def longest(job):
    most = min(job["latency"] - job["commit"], 2 * job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    return most if most >= 1 else None
