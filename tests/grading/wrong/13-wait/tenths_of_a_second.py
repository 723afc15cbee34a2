# misconception: waits are tenths of a second
# says: waits([0.01, 0.002], [0.03, 0.001]) answered [0.0, 0.0], but the typical wait of 2,500 arrivals is 0.02 s.
def waits(first, second):
    intervals, commits = first[0] + second[0], first[1] + second[1]
    return [round(intervals / 2 + commits, 1), round(intervals + commits, 1)]
