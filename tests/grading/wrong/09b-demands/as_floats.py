# misconception: a floating-point number holds every time
# says: 'sealed': 1152921504606846977
def broken(store, job):
    waits = job["checkpoint"] + job["downtime"]
    found = []
    if store["shows"] == "everything":
        found.append(1)
    if store["open"] is not None and store["open"] <= job["interval"]:
        found.append(2)
    if store["sealed"] is not None and float(store["sealed"]) <= float(waits):
        found.append(3)
    if store["ends"] == "its session":
        found.append(4)
    if store["again"] != "nothing":
        found.append(5)
    return found
