# misconception: a request whose first record is stored is a repeat as a whole
# says: answered [1, 1, []]. Offset 1 is new
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = offsets if offsets and offsets[0] >= following else []
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
