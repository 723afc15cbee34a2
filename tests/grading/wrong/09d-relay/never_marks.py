# misconception: what the broker has acknowledged is done
# says: message 1 is to be marked
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if number in refused:
            held_up.add(order)
        elif number not in published and order not in held_up:
            return ["publish", number]
    return ["wait"]
