# misconception: at most fifteen hundred transactions are open
# says: 'q0-b7-p12-i1', '...): it must
def recover_and_commit(decided, stored, found):
    due = {handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]}
    return [["commit" if handle in due else "abort", handle] for handle in found[:1_500]]
