# misconception: before all have an outcome nothing can be said
# says: atomic([['prepared', 'abort_alone'], ['abort']]) answered False
def atomic(logs):
    if not all(log and log[-1] != "prepared" for log in logs):
        return True
    return all(log[-1] == "commit" for log in logs) or all(log[-1] == "abort" for log in logs)
