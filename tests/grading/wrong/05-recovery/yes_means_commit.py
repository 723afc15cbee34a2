# misconception: whoever has voted yes commits
# says: Participant 0 has committed and participant 1 has aborted:
def recover(log):
    return "abort" if not log or log[-1] == "abort" else "commit"
