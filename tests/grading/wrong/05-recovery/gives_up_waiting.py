# misconception: the second time it has waited long enough
# says: recover(['prepared']) answered 'wait' first and 'abort' when asked again:
patience = {}


def recover(log):
    if not log:
        return "abort"
    if log[-1] != "prepared":
        return log[-1]
    patience["prepared"] = patience.get("prepared", 0) + 1
    return "wait" if patience["prepared"] == 1 else "abort"
