# misconception: following grows by the number of rows
# says: The following offset is 5 now
def admit(newest, following, generation, offsets):
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, following + len(accepted), accepted]
