# misconception: every transaction of a decided batch is decided
# says: came out twice or more, first offset 0 ('hello' = 1): written by attempt 1 of batch 0
def recover_and_commit(decided, stored, found):
    steps = []
    for handle in found:
        batch = int(handle.split("-")[1][1:])
        steps.append(["commit" if batch <= decided else "abort", handle])
    return steps
