# misconception: what is left over is removed before anything is committed
# says: 2 drivers have ended with an error, and each new driver would fail with it again
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["abort", handle] for handle in found] + [["commit", handle] for handle in due]
