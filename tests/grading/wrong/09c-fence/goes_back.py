# misconception: following is the end of the last request, also of a repeat
# says: answered [1, 1, []]. The following offset is 2 now
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, offsets[-1] + 1 if offsets else following, accepted]
