# misconception: whoever decides alone tears the transfer
# says: atomic([['prepared', 'abort_alone'], []]) answered False, but nothing is wrong
def atomic(logs):
    outcomes = {log[-1] for log in logs if log}
    return "abort_alone" not in outcomes and not ("commit" in outcomes and "abort" in outcomes)
