# misconception: a generation counts only when it has brought a row
# says: with 0 the store would fence wrongly
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    if not accepted:
        return [newest, following, []]
    return [generation, accepted[-1] + 1, accepted]
