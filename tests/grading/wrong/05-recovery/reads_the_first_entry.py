# misconception: the vote decides what comes after it
# says: Participant 0 waits for a decision, although its log (prepared, abort) does not end with the yes vote, prepared
def recover(log):
    return {"prepared": "wait"}.get(log[0], log[0]) if log else "abort"
