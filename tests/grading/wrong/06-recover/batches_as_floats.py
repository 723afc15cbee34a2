# misconception: a floating-point number holds every number of a batch
# says: ], ['q0-b1000000000000000000-p0-i1', 'q0-b1000000000000000001-p0-i1']): it
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if float(vote["batch"]) <= float(decided) for handle in vote["handles"]]
    return [["commit" if handle in due else "abort", handle] for handle in found]
