# misconception: following is the last stored offset
# says: Offset 0 is new, and its row is lost
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset > following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
