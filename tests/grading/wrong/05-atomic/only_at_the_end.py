# misconception: before all have an outcome nothing can be said
# says: Participant 0 has committed and participant 1 has aborted:
def atomic(logs):
    if not all(log and log[-1] != "prepared" for log in logs):
        return True
    return all(log[-1] == "commit" for log in logs) or all(log[-1] == "abort" for log in logs)
