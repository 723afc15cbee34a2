# misconception: a limit of 0 is none
# says: 'sealed': 0, 'ends': 'anybody', 'again': 'nothing'}, {'interval': 10, 'checkpoint': 2, 'downtime': 30}) answered []
def broken(store, job):
    bad = []
    if store["shows"] == "everything":
        bad.append(1)
    if store["open"] and store["open"] <= job["interval"]:
        bad.append(2)
    if store["sealed"] and store["sealed"] <= job["checkpoint"] + job["downtime"]:
        bad.append(3)
    if store["ends"] == "its session":
        bad.append(4)
    if store["again"] in ("error", "next"):
        bad.append(5)
    return bad
