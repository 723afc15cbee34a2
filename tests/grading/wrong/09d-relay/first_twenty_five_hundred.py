# misconception: at most twenty-five hundred rows are open
# says: message 5000 is to be published
def relay_step(rows, published, refused):
    held = set()
    for number, order in rows[:2_500]:
        if order in held:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held.add(order)
    return ["wait"]
