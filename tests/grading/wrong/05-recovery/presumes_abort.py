# misconception: no outcome in the log means abort, also for a participant
# says: Participant 0 had voted yes and has aborted, although nobody had decided to abort
def recover(log):
    return "commit" if "commit" in log else "abort"
