# misconception: who has logged nothing has not done its part
# says: atomic([['commit'], []]) answered False
def atomic(logs):
    outcomes = {log[-1] if log else "nothing" for log in logs}
    return not ("commit" in outcomes and outcomes & {"abort", "abort_alone", "nothing"})
