# misconception: an offset has at most eighteen digits
# says: admit(1000000000000000000, 1000000000000
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    new = [o for o in offsets if str(o).zfill(18) >= str(following).zfill(18)]
    return [generation, new[-1] + 1 if new else following, new]
