# misconception: what is left over is removed before anything is committed
# says: Drivers have ended with an error 2 times, and each new one meets it again
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["abort", handle] for handle in found] + [["commit", handle] for handle in due]
