# misconception: a query has at most sixteen values
# says: ['sum(amount 18)', 'bigint', True], ['sum(price)', 'double', True]]
def from_empty(old, new, sink):
    if new["table"] != old["table"]:
        return "right"
    totals = [bool(version["values"]) and not version["keys"] for version in (old, new)]
    kept = [bool(version["keys"] or version["values"]) for version in (old, new)]
    if sink != "keys" or totals[0] != totals[1] or kept[0] != kept[1] or old["keys"] != new["keys"]:
        return "wrong"
    is_less = old["filter"] != new["filter"] or new["sources"] < old["sources"]
    return "wrong" if is_less and not totals[0] else "right"


def is_refused(old, new):
    if old["sources"] != new["sources"] or [kind for _, kind in old["keys"]] != [kind for _, kind in new["keys"]]:
        return True
    if len(old["values"]) != len(new["values"]):
        return True
    for before, after in list(zip(old["values"], new["values"]))[:16]:
        if before[1] != after[1] or (after[2] and not before[2]):
            return True
    return False


def has_two_meanings(old, new, sink, unfinished):
    total = new["values"] and not new["keys"]
    if old["table"] != new["table"] and not (total and sink == "keys" and unfinished):
        return True
    if not old["keys"] and not old["values"]:
        return False
    names = [[value[0] for value in version["values"]] for version in (old, new)]
    return old["filter"] != new["filter"] or old["keys"] != new["keys"] or names[0] != names[1]


def start(old, new, sink, unfinished):
    if new["checkpoint"] != old["checkpoint"]:
        return from_empty(old, new, sink)
    if is_refused(old, new):
        return "refused"
    other = old["filter"] != new["filter"]
    if has_two_meanings(old, new, sink, unfinished) or (
        unfinished and (sink == "nothing" or (sink == "keys" and other))
    ):
        return "wrong"
    return "ignored" if old["settings"] != new["settings"] else "right"


def review(old, new, sink, unfinished):
    first = start(old, new, sink, unfinished)
    if first == "right":
        return [first, "deploy"]
    if unfinished and sink != "nothing" and start(old, new, sink, False) == "right":
        return [first, "drain"]
    empty = dict(new, checkpoint=new["checkpoint"] + old["checkpoint"] + "x")
    return [first, "new checkpoint" if start(old, empty, sink, unfinished) == "right" else "backfill"]
