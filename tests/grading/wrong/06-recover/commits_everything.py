# misconception: what was pre-committed is decided
# says: recover_and_commit(-1, [], ['q0-b0-p1-i1']) answered [['commit', 'q0-b0-p1-i1']]
def recover_and_commit(decided, stored, found):
    return [["commit", handle] for handle in found]
