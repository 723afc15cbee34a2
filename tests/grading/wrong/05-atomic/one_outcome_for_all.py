# misconception: all that have logged anything must have logged the same
# says: atomic([['prepared'], ['abort']]) answered False, but this is a state of a good system (all rules kept):
def atomic(logs):
    return len({log[-1] for log in logs if log}) <= 1
