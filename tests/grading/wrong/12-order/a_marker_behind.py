# misconception: a marker behind the rows is as good as one with them
# says: 'joins marker': True, 'joins done': False}, True) answered ['plan', 'rows', 'marker', 'done']
def order(store, quiet):
    if store["rows"] == "replaced":
        return [] if quiet else ["plan", "rows", "done"]
    if store["rows"] == "together" and store["joins done"]:
        return ["plan", "rows+done"]
    if store["rows"] == "together" and store["stages"]:
        return ["plan", "staged", "done", "rows"]
    if store["rows"] == "together" and store["joins marker"]:
        return ["plan", "rows", "marker", "done"]
    return []
