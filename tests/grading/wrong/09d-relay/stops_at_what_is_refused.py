# misconception: a refused message holds up every order
# says: [4, 'B']], [], [1]) answered ['wait']
def relay_step(rows, published, refused):
    for number, _ in rows:
        if number in published:
            return ["mark", number]
        if number in refused:
            return ["wait"]
        return ["publish", number]
    return ["wait"]
