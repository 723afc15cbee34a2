# misconception: a store does not go back
# says: Exactly-once, because every one of the 2 records is contained in the last value of its key
def steady(seen):
    return True
