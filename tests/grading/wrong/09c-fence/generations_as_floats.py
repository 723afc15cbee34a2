# misconception: a floating-point number holds every whole number
# says: admit(9007199254740993, 5, 9007199254740992, [5]) answered [
def admit(newest, following, generation, offsets):
    if float(generation) < float(newest):
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
