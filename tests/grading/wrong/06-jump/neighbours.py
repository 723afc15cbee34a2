# misconception: a jump is between two rows that follow each other
# says: Exactly-once, because every one of the 3 records is contained in the last value of its key
def steady(seen):
    return all(one[0] != other[0] or one[1] <= other[1] for one, other in zip(seen, seen[1:]))
