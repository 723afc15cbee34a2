# misconception: only what the newest driver wrote can be pending
# says: 'q0-b10-p0-i2'
def recover_and_commit(decided, stored, found):
    voted = {handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]}
    newest = max((handle.split("-")[3] for handle in found), default="")
    return [["commit" if each in voted and each.split("-")[3] == newest else "abort", each] for each in found]
