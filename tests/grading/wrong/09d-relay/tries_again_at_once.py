# misconception: a refused message is tried again until the broker takes it
# says: [4, 'B']], [], [1]) answered ['publish', 1]
def relay_step(rows, published, refused):
    for number, _ in rows:
        if number in published:
            return ["mark", number]
        return ["publish", number]
    return ["wait"]
