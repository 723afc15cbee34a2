# misconception: a generation fits into 32 bits
# says: admit(7, 9, 4294967299,
def admit(newest, following, generation, offsets):
    if generation % 2**32 < newest % 2**32:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
