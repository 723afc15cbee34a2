# misconception: generations compare like text
# says: admit(9, 100000000, 10, []) answered 'fenced'
def admit(newest, following, generation, offsets):
    if str(generation) < str(newest):
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
