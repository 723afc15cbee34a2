# misconception: the number of files tells the step
# says: 'offsets/.1.tmp']) answered 2
def next_step(engine, left):
    if engine == "spark":
        return len([each for each in left if each.startswith("offsets/")])
    return len([each for each in left if each.startswith("ha/")]) + 1
