# misconception: what was not committed before the crash is undone
# says: Not exactly-once, because 2 of 3 records got lost, first offset 0 ('hello' = 1):
def recover_and_commit(decided, stored, found):
    return [["abort", handle] for handle in found]
