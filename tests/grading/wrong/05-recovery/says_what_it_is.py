# misconception: a state is answered, not what to do
# says: recover([]) returned 'aborted'; return "abort", "commit" or "wait"
def recover(log):
    if not log:
        return "aborted"
    return {"prepared": "in_doubt", "commit": "committed", "abort": "aborted"}[log[-1]]
