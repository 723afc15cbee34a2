# misconception: who sends only what is stored must be a zombie
# says: admit(1, 1, 1, [0]) answered 'fenced'
def admit(newest, following, generation, offsets):
    accepted = [offset for offset in offsets if offset >= following]
    if generation < newest or (offsets and not accepted):
        return "fenced"
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
