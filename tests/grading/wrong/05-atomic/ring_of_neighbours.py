# misconception: each participant has to agree with its neighbours only
# says: (any four logs)
def atomic(logs):
    ends = [log[-1].split("_")[0] if log else "" for log in logs]
    return all({end, ends[place - 1]} != {"commit", "abort"} for place, end in enumerate(ends))
