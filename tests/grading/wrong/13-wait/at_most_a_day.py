# misconception: nobody waits for more than a day
# says: waits([700000, 20], [0.5, 0.1]) answered [86400, 86400], but the typical wait of 2,500 arrivals is 350020.
def waits(first, second):
    intervals, commits = first[0] + second[0], first[1] + second[1]
    return [min(intervals / 2 + commits, 86_400), min(intervals + commits, 86_400)]
