# misconception: offsets have no gaps, so a request that skips one is wrong
# says: admit(2, 2, 2, [1, 4]) answered 'fenced'
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    if accepted and accepted[0] != following:
        return "fenced"
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
