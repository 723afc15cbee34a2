# misconception: a floating-point number holds every number of a batch
# says: commit(1152921504606846977, ...) answered []
def commit(batch, rows, confirmed):
    if float(batch) in map(float, confirmed):
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]
