# misconception: following is kept as the last stored offset
# says: answered [1, 0, [0]]. The following offset is 1 now
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] if accepted else following, accepted]
