# misconception: a checkpoint is complete when its _metadata is there
# says: 'chk-9/_metadata']) answered 10; flink continues with 9
def next_step(engine, left):
    if engine == "spark":
        planned = [int(each[8:]) for each in left if each.startswith("offsets/") and "." not in each]
        newest = max(planned, default=-1)
        return newest + 1 if f"commits/{newest}" in left or newest < 0 else newest
    done = [int(each.partition("/")[0][4:]) for each in left if each.endswith("/_metadata")]
    return max(done, default=0) + 1
