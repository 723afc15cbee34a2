# misconception: one broken demand is enough to know
# says: answered [4], and this store breaks demand 5
def broken(store, job):
    found = [
        store["shows"] == "everything",
        store["open"] is not None and store["open"] <= job["interval"],
        store["sealed"] is not None and store["sealed"] <= job["checkpoint"] + job["downtime"],
        store["ends"] == "its session",
        store["again"] != "nothing",
    ]
    return [number for number, wrong in enumerate(found, start=1) if wrong][:1]
