# misconception: an id fits into 32 bits
# says: message 4294967303 is to
def relay_step(rows, published, refused):
    held_up = set()
    for number, order in rows:
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number % 2**32 not in [each % 2**32 for each in refused]:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]
