# misconception: only transactions with a stored vote are known
# says: The transaction q0-b1-p2-i1 is open and nobody will end it:
def recover_and_commit(decided, stored, found):
    steps = []
    for vote in stored:
        verb = "commit" if vote["batch"] <= decided else "abort"
        steps += [[verb, handle] for handle in vote["handles"]]
    return steps
