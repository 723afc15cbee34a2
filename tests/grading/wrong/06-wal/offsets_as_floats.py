# misconception: a floating-point number holds every offset
# says: ['write', 9007199254740992]
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", offset] for offset in map(int, map(float, rows))] + [["confirm", batch]]
