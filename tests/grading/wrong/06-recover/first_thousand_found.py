# misconception: at most a thousand transactions are open
# says: 'handles': ['q0-b2000-p525-i1']
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit" if handle in due else "abort", handle] for handle in found[:1000]]
