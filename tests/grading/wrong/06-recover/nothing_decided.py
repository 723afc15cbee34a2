# misconception: where nothing was decided there is nothing to do
# says: The transaction q0-b0-p1-i1 is open and nobody will end it:
def recover_and_commit(decided, stored, found):
    if decided < 0:
        return []
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in found if handle not in due]
