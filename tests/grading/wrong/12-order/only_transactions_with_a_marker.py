# misconception: without a marker nothing is exactly-once
# says: answered []. There is an order for this store.
def order(store, quiet):
    if store["rows"] == "together" and store["joins marker"]:
        return ["plan", "rows+marker", "done"]
    return []
