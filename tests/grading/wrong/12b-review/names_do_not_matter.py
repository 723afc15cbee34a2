# misconception: Spark compares types, so a release that starts is right
# says: is ['right', 'deploy']. It is ['wrong', 'new checkpoint']: the new ver
def review(old, new, sink, unfinished):
    keys, values = (old["keys"], new["keys"]), (old["values"], new["values"])

    def differ(columns, place):
        before, after = columns
        return [column[place] for column in before] != [column[place] for column in after]

    def start(checkpoint, table, unfinished):
        filtered = old["filter"] != new["filter"]
        if checkpoint != old["checkpoint"]:
            refilled = sink == "keys" and not filtered and old["keys"] == new["keys"]
            return "right" if table != old["table"] or refilled else "wrong"
        if old["sources"] != new["sources"] or differ(keys, 1) or differ(values, 1):
            return "refused"
        if any(column[2] and not old["values"][place][2] for place, column in enumerate(new["values"])):
            return "refused"
        two_rules = filtered and (old["values"] or (unfinished and sink != "batches"))
        if table != old["table"] or two_rules:
            return "wrong"
        return "right" if old["settings"] == new["settings"] else "ignored"

    planned, todo = start(new["checkpoint"], new["table"], unfinished), "backfill"
    if planned == "right":
        todo = "deploy"
    elif start(new["checkpoint"], new["table"], unfinished=False) == "right":
        todo = "drain"
    elif start(None, new["table"], unfinished) == "right":
        todo = "new checkpoint"
    return [planned, todo]
