# misconception: only the coordinator makes anybody abort
# says: Participant 1 has committed and participant 0 has aborted alone:
def atomic(logs):
    outcomes = {log[-1] for log in logs if log}
    return not {"commit", "abort"} <= outcomes
