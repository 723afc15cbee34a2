# misconception: the newest name is the last one in the alphabet
# says: answered 9; flink continues with 11
def next_step(engine, left):
    if engine == "spark":
        planned = sorted(each for each in left if each.startswith("offsets/") and "." not in each)
        if not planned:
            return 0
        newest = int(planned[-1].partition("/")[2])
        return newest + (f"commits/{newest}" in left)
    done = sorted(each for each in left if each.startswith("ha/"))
    return int(done[-1][3:]) + 1 if done else 1
