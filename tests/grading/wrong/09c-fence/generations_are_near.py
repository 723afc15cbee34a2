# misconception: a much smaller generation comes from a counter that began again
# says: admit(1000000000000000000, 9, 1, [9])
def admit(newest, following, generation, offsets):
    if newest - 1_000_000 < generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
