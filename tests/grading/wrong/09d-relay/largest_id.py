# misconception: rows with an id below the largest published one are done
# says: message 1 is to be published
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if number in published:
            return ["mark", number]
        if order in held_up or number < max(published, default=0):
            continue
        if number not in refused:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
