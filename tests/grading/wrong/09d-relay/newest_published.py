# misconception: only the newest thousand published messages may still be open
# says: relay_step([[1, 'A']], [1, 2, 3, 4, 5,
def relay_step(rows, published, refused):
    published, held = published[-1_000:], set()
    for number, order in rows:
        if order in held:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held.add(order)
    return ["wait"]
