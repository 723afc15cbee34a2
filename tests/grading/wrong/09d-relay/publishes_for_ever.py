# misconception: the first open row is published, whatever this process has done
# says: is in published
def relay_step(rows, published, refused):
    return ["publish", rows[0][0]] if rows else ["wait"]
