# misconception: what is replaced may be noted as done first
# says: answered ['plan', 'done', 'rows']. The process dies
def order(store, quiet):
    if store["rows"] == "replaced":
        return [] if quiet else ["plan", "done", "rows"]
    if store["rows"] == "together":
        if store["joins done"]:
            return ["plan", "rows+done"]
        if store["joins marker"]:
            return ["plan", "rows+marker", "done"]
        if store["stages"]:
            return ["plan", "staged", "done", "rows"]
    return []
