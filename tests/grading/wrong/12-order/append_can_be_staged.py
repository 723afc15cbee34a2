# misconception: staging makes rows that are added one by one exactly-once
# says: answered ['plan', 'staged', 'done', 'rows'], and no order is exactly-once with this store
def order(store, quiet):
    if store["rows"] == "replaced":
        return [] if quiet else ["plan", "rows", "done"]
    if store["rows"] == "together":
        if store["joins done"]:
            return ["plan", "rows+done"]
        if store["joins marker"]:
            return ["plan", "rows+marker", "done"]
    if store["stages"]:
        return ["plan", "staged", "done", "rows"]
    return []
