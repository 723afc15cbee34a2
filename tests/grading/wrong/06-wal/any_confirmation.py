# misconception: one confirmation says that the log works
# says: commit(1, [2], [0]) answered []
def commit(batch, rows, confirmed):
    if confirmed:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]
