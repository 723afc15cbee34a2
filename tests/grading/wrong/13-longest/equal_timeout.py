# misconception: a timeout as long as the transaction is open is enough
# says: 'timeout': 60}) answered 57
def longest(job):
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"])
    return most if most >= 1 else None
