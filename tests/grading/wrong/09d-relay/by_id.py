# misconception: the smallest id was committed first
# says: message 7 comes after
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in sorted(rows):
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
