# misconception: the first open row is published, whatever this process has done
# says: is already in the list published
def relay_step(rows, published, refused):
    return ["publish", rows[0][0]] if rows else ["wait"]
