# misconception: numbers have at most three digits
# says: 'offsets/.1001.tmp']) answered 1000
def next_step(engine, left):
    def newest(folder):
        names = [n[len(folder) :] for n in left if n.startswith(folder)]
        names = sorted(n.zfill(3) for n in names if n.isdigit())
        return int(names[-1]) if names else None

    if engine == "spark":
        plan, note = newest("offsets/"), newest("commits/")
        if plan is None:
            return 0
        return plan + 1 if note == plan else plan
    done = newest("ha/")
    return 1 if done is None else done + 1
