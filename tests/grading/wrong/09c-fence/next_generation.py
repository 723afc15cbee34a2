# misconception: generations grow by one
# says: admit(0, 0, 2, []) answered [1,
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [newest + (generation > newest), accepted[-1] + 1 if accepted else following, accepted]
