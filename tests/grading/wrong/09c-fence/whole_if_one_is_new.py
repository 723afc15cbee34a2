# misconception: a request with a new record is new as a whole
# says: answered [1, 2, [0, 1]]. The store has the row of offset 0 already
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = offsets if offsets and offsets[-1] >= following else []
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
