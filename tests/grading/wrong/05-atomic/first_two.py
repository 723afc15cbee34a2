# misconception: a transfer has two sides
# says: Participant 0 has committed and participant 2 has aborted:
def atomic(logs):
    outcomes = {log[-1] for log in logs[:2] if log}
    return not ("commit" in outcomes and outcomes & {"abort", "abort_alone"})
