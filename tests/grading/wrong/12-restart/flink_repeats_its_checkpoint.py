# misconception: Flink repeats the checkpoint that it restores
# says: next_step('flink', ['chk-8/_metadata', 'ha/8']) answered 8
def next_step(engine, left):
    if engine == "spark":
        planned = [int(each[8:]) for each in left if each.startswith("offsets/") and "." not in each]
        newest = max(planned, default=-1)
        return newest + 1 if f"commits/{newest}" in left or newest < 0 else newest
    done = [int(each[3:]) for each in left if each.startswith("ha/")]
    return max(done, default=1)
