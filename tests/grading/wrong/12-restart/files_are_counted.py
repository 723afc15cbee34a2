# misconception: the number of files tells the step
# says: next_step('spark', ['offsets/0']) answered 1
def next_step(engine, left):
    if engine == "spark":
        return len([each for each in left if each.startswith("offsets/")])
    return len([each for each in left if each.endswith("_metadata")]) + 1
