# misconception: after a crash the last batch always runs again
# says: 'offsets/.1.tmp']) answered 0
def next_step(engine, left):
    if engine == "spark":
        planned = [int(each[8:]) for each in left if each.startswith("offsets/") and "." not in each]
        return max(planned, default=0)
    done = [int(each[3:]) for each in left if each.startswith("ha/")]
    return max(done, default=0) + 1
