# misconception: votes that are stored are decided
# says: On the way recover_and_commit(-1, [], []) answered []; recover_and_commit(-1, [{'batch':
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored for handle in vote["handles"]]
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in found if handle not in due]
