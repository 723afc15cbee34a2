# misconception: rows that are staged first are safe, whatever comes next
# says: answered ['plan', 'staged', 'rows', 'done']. The process dies
def order(store, quiet):
    if store["rows"] == "replaced":
        return [] if quiet else ["plan", "rows", "done"]
    if store["rows"] == "together":
        if store["joins done"]:
            return ["plan", "rows+done"]
        if store["joins marker"]:
            return ["plan", "rows+marker", "done"]
        if store["stages"]:
            return ["plan", "staged", "rows", "done"]
    return []
