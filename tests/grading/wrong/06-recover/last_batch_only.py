# misconception: only the last decided batch can be pending
# says: Not exactly-once, because 1 of 3 records got lost, first offset 1 ('world' = 1):
def recover_and_commit(decided, stored, found):
    due = [handle for vote in stored if vote["batch"] == decided for handle in vote["handles"][-1:]]
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in found if handle not in due]
