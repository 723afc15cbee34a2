# misconception: only the owner that the store knows may write
# says: After generation 1 sends []: admit(1, 0, 2, []) answered 'fenced'
def admit(newest, following, generation, offsets):
    if newest and generation != newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]
