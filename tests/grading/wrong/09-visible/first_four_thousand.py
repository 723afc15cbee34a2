# misconception: a log has at most 4,096 entries
# says: offset 4096 is missing
def visible(log):
    log, open_, out = log[:4_096], {}, []
    for place, (what, name) in enumerate(log):
        if what == "write":
            open_.setdefault(name, []).append(place)
        elif what == "plain":
            out.append(place)
        else:
            records = open_.pop(name, [])
            out += records if what == "commit" else []
    end = min((places[0] for places in open_.values()), default=len(log))
    return sorted(place for place in out if place < end)
