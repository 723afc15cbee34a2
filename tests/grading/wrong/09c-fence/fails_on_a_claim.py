# misconception: a request always has records
# says: IndexError
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    return [generation, max(following, offsets[-1] + 1), [offset for offset in offsets if offset >= following]]
