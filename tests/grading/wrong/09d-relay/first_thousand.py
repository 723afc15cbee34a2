# misconception: at most a thousand rows are open
# says: message 5000 is to be published
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows[:1000]:
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
