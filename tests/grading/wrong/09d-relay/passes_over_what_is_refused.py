# misconception: a refused message does not hold up anything
# says: is not in the topic yet
def relay_step(rows, published, refused):
    for number, _ in rows:
        if number in published:
            return ["mark", number]
    for number, _ in rows:
        if number not in refused:
            return ["publish", number]
    return ["wait"]
