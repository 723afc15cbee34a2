# misconception: nobody keeps more than five hundred votes
# says: 'q0-b1000-p0-i1', 'q0-b1999-p0-i1'
def recover_and_commit(decided, stored, found):
    due = {handle for vote in stored[-500:] if vote["batch"] <= decided for handle in vote["handles"]}
    return [["commit" if handle in due else "abort", handle] for handle in found]
