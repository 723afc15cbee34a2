# misconception: a row is marked before it is published, so that nothing comes twice
# says: answered ['mark', 1], but
def relay_step(rows, published, refused):
    for number, _ in rows:
        if number not in refused:
            return ["mark", number]
    return ["wait"]
