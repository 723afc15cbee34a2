# misconception: the larger of two generations is the larger floating-point number
# says: admit(9007199254740992, 5, 9007199254740993, [5]) answered [9007199254740992
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [max(newest, generation, key=float), accepted[-1] + 1 if accepted else following, accepted]
