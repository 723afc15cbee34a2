# misconception: a fence recognises repeats as well
# says: answered [1, 1, [0]]. The store has the row of offset 0 already
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    return [generation, offsets[-1] + 1 if offsets else following, offsets]
