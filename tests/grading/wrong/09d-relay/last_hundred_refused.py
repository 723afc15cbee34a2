# misconception: at most a hundred messages are refused
# says: [1, 'order 1'], [2, 'order 2']
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused[-100:]:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
