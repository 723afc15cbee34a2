# misconception: checkpoint and restart do not come one after the other
# says: 'sealed': 31, 'ends': 'anybody', 'again': 'nothing'}
def broken(store, job):
    found = [
        store["shows"] == "everything",
        store["open"] is not None and store["open"] <= job["interval"],
        store["sealed"] is not None and store["sealed"] <= max(job["checkpoint"], job["downtime"]),
        store["ends"] == "its session",
        store["again"] != "nothing",
    ]
    return [number for number, wrong in enumerate(found, start=1) if wrong]
