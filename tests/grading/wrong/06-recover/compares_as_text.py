# misconception: numbers of batches can be compared as texts
# says: 'batch': 10, 'handles': ['q0-b10-p0-i1'
def recover_and_commit(decided, stored, found):
    good = {h for s in stored if str(s["batch"]) <= str(decided) for h in s["handles"]}
    return [["commit" if h in good else "abort", h] for h in found]
