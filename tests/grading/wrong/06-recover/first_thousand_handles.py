# misconception: a vote names at most a thousand transactions
# says: 'q0-b7-p..., ['q0-b7-p0-i1', 'q0-b7-p1000-i1'
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"][:1000]]
    return [["commit" if handle in due else "abort", handle] for handle in found]
