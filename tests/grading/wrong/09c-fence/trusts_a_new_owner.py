# misconception: a new owner knows where to go on, so its first records are new
# says: admit(1, 1, 2, []) answered [2, 0, []]
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    if generation > newest:
        following = 0
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
