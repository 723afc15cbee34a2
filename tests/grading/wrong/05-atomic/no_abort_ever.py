# misconception: an abort is a failure
# says: atomic([['abort'], []]) answered False, but this is a state of a good system (all rules kept):
def atomic(logs):
    return not any("abort" in log or "abort_alone" in log for log in logs)
