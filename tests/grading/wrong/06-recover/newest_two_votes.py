# misconception: only the two newest votes can be open
# says: {'batch': 0, 'handles': ['q0-b0-p0-i1']}
def recover_and_commit(decided, stored, found):
    good = {h for v in stored[-2:] if v["batch"] <= decided for h in v["handles"]}
    return [["commit" if h in good else "abort", h] for h in found]
