# misconception: rows that replace each other never show anything odd
# says: True) answered ['plan', 'rows', 'done'], and no order is exactly-once with this store
def order(store, quiet):
    if store["rows"] == "replaced":
        return ["plan", "rows", "done"]
    if store["rows"] == "together":
        if store["joins done"]:
            return ["plan", "rows+done"]
        if store["joins marker"]:
            return ["plan", "rows+marker", "done"]
        if store["stages"]:
            return ["plan", "staged", "done", "rows"]
    return []
