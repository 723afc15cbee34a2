# misconception: an old owner's new records do no harm
# says: answered [2, 1, [0]]. The store has accepted generation 2, so generation 1 owns nothing any more
def admit(newest, following, generation, offsets):
    accepted = [offset for offset in offsets if offset >= following]
    if generation < newest and not accepted:
        return "fenced"
    return [max(newest, generation), accepted[-1] + 1 if accepted else following, accepted]
