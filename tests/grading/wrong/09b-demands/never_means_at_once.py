# misconception: a store without a limit has no limit to keep
# says: answered [2], and this store keeps demand 2
def broken(store, job):
    found = [
        store["shows"] == "everything",
        not store["open"] or store["open"] <= job["interval"],
        store["sealed"] is not None and store["sealed"] <= job["checkpoint"] + job["downtime"],
        store["ends"] == "its session",
        store["again"] != "nothing",
    ]
    return [number for number, wrong in enumerate(found, start=1) if wrong]
