# misconception: the last digits of an id tell messages apart
# says: message 97007 is to
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number % 1000 not in [each % 1000 for each in refused]:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
