# misconception: a request has at most a thousand records
# says: answered [3, 1999, [0, 2, 4, 6, 8,
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets[:1000] if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
