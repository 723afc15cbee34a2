# misconception: each request needs a newer generation than the one before
# says: admit(1, 0, 1, []) answered 'fenced'
def admit(newest, following, generation, offsets):
    if generation <= newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
