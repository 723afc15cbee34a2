# misconception: the position alone is enough
# says: admit(2, 0, 1, []) answered [2, 0, []]
def admit(newest, following, generation, offsets):
    accepted = [offset for offset in offsets if offset >= following]
    return [max(newest, generation), accepted[-1] + 1 if accepted else following, accepted]
