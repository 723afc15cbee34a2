# misconception: what is planned is done
# says: next_step('spark', ['offsets/0']) answered 1
def next_step(engine, left):
    if engine == "spark":
        planned = [int(each[8:]) for each in left if each.startswith("offsets/") and "." not in each]
        return max(planned, default=-1) + 1
    done = [int(each[3:]) for each in left if each.startswith("ha/")]
    return max(done, default=0) + 1
