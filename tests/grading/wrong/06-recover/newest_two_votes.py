# misconception: only the two newest votes can be open
# says: ['q0-b0-p0-i1', 'q0-b1-p0-i1', 'q
def recover_and_commit(decided, stored, found):
    good = {h for v in stored[-2:] if v["batch"] <= decided for h in v["handles"]}
    return [["commit" if h in good else "abort", h] for h in found]
