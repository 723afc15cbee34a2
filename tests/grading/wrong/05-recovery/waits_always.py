# misconception: whoever is not sure asks
# says: Participant 0 waits for a decision, although its log (empty) does not end with the yes vote, prepared
def recover(log):
    return log[-1] if log and log[-1] != "prepared" else "wait"
