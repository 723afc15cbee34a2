# misconception: upper and lower case make no other order
# says: of order Order was refused
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if order.lower() in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held_up.add(order.lower())
    return ["wait"]
