# misconception: a batch confirms the one before it
# says: commit(1, [2], [0]) answered [['write', 2], ['confirm', 0]]
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", offset] for offset in rows] + [["confirm", max(batch - 1, 0)]]
