# misconception: a blank at the end makes no other order
# says: no earlier message of order 'order ' was refused
def relay_step(rows, published, refused):
    seen = set()
    for number, order in rows:
        key = order.rstrip()
        if key not in seen:
            seen.add(key)
            if number in published:
                return ["mark", number]
            if number not in refused:
                return ["publish", number]
    return ["wait"]
