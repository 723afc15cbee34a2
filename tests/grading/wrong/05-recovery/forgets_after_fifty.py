# misconception: whoever is asked for the fiftieth time has nothing to commit any more
# says: recover(['prepared', 'commit']) answered 'commit' first and 'abort' when asked again
asked = {"commit": 0, "abort": 0}


def recover(log):
    if not log:
        return "abort"
    if log[-1] == "prepared":
        return "wait"
    asked[log[-1]] += 1
    return "abort" if asked["commit"] > 50 else log[-1]
