# misconception: a request has at most 4,096 records
# says: answered [3, 8191, [0, 2, 4, 6, 8,
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    new = [offset for offset in offsets[:4_096] if offset >= following]
    return [generation, new[-1] + 1 if new else following, new]
