# misconception: Spark starts whatever has a state
# says: ['sum(amount)', 'double', True]
def review(old, new, sink, unfinished):
    keys, values = (old["keys"], new["keys"]), (old["values"], new["values"])
    had_state, has_state = (bool(version["keys"] or version["values"]) for version in (old, new))
    is_total = new["values"] and not new["keys"]

    def differ(columns, place):
        before, after = columns
        return [column[place] for column in before] != [column[place] for column in after]

    def start(checkpoint, table, unfinished):
        filtered = old["filter"] != new["filter"]
        if checkpoint != old["checkpoint"]:
            takes_all = is_total or (not filtered and new["sources"] >= old["sources"])
            refilled = sink == "keys" and had_state == has_state and old["keys"] == new["keys"] and takes_all
            return "right" if table != old["table"] or refilled else "wrong"
        if old["sources"] != new["sources"] or bool(old["values"]) != bool(new["values"]):
            return "refused"
        if any(
            len(old["values"]) > place and column[2] and not old["values"][place][2]
            for place, column in enumerate(new["values"])
        ):
            return "refused"
        two_rules = filtered and (had_state or (unfinished and sink == "keys"))
        doubled = unfinished and sink == "nothing"
        lacks_rows = table != old["table"] and not (is_total and unfinished and sink == "keys")
        if lacks_rows or keys[0] != keys[1] or values[0] != values[1] or two_rules or doubled:
            return "wrong"
        return "right" if old["settings"] == new["settings"] else "ignored"

    planned, todo = start(new["checkpoint"], new["table"], unfinished), "backfill"
    if planned == "right":
        todo = "deploy"
    elif start(new["checkpoint"], new["table"], unfinished=unfinished and sink == "nothing") == "right":
        todo = "drain"
    elif start(None, new["table"], unfinished) == "right":
        todo = "new checkpoint"
    return [planned, todo]
