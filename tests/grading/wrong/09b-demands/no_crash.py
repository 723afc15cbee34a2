# misconception: a pre-commit lasts until the checkpoint is complete, and no longer
# says: 'sealed': 3, 'ends': 'anybody', 'again': 'nothing'}
def broken(store, job):
    found = [
        store["shows"] == "everything",
        store["open"] is not None and store["open"] <= job["interval"],
        store["sealed"] is not None and store["sealed"] <= job["checkpoint"],
        store["ends"] == "its session",
        store["again"] != "nothing",
    ]
    return [number for number, wrong in enumerate(found, start=1) if wrong]
