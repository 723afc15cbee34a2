# misconception: each participant must be of one mind
# says: atomic([['abort'], ['commit']]) answered True, but this does not hold there (the yes is not logged):
def atomic(logs):
    return all(not ("commit" in log and ("abort" in log or "abort_alone" in log)) for log in logs)
