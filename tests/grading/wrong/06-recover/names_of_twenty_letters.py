# misconception: handles differ in their first twenty letters
# says: 'q0-b1000000000000000000-p0-i12'
def recover_and_commit(decided, stored, found):
    due = [handle[:20] for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit" if handle[:20] in due else "abort", handle] for handle in found]
