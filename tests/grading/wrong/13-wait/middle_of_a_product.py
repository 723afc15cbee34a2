# misconception: the typical interval is the geometric mean
# says: waits([3, 4], [0.5, 2]) answered [7.224744871391589, 9.5], but the typical wait of 2,500 arrivals is 7.75
def waits(first, second):
    intervals, commits = first[0] + second[0], first[1] + second[1]
    return [(first[0] * second[0]) ** 0.5 + commits, intervals + commits]
