# misconception: only the newest hundred votes can be open
# says: 'q0-b250-p0-i1', 'q0-b499-p0-i1'
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored[-100:] if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit" if handle in due else "abort", handle] for handle in found]
