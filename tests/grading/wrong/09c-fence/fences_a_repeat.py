# misconception: who sends only what is stored must be a zombie
# says: answered 'fenced'. No newer generation than 1 was here
def admit(newest, following, generation, offsets):
    accepted = [offset for offset in offsets if offset >= following]
    if generation < newest or (offsets and not accepted):
        return "fenced"
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
