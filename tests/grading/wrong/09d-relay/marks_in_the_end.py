# misconception: all rows are published, and then all are marked
# says: message 1 comes after a later message
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if number in refused:
            held_up.add(order)
        elif number not in published and order not in held_up:
            return ["publish", number]
    for number, _ in rows:
        if number in published:
            return ["mark", number]
    return ["wait"]
