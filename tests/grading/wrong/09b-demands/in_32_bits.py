# misconception: a time fits into 32 bits
# says: 'sealed': 4294967301
def broken(store, job):
    waits = job["checkpoint"] + job["downtime"]
    found = []
    if store["shows"] == "everything":
        found.append(1)
    if store["open"] is not None and store["open"] <= job["interval"]:
        found.append(2)
    if store["sealed"] is not None and store["sealed"] % 2**32 <= waits:
        found.append(3)
    if store["ends"] == "its session":
        found.append(4)
    if store["again"] != "nothing":
        found.append(5)
    return found
