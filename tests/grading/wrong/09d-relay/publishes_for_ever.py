# misconception: the first open row is published, whatever this process has done
# says: After publish 1: relay_step([[1, 'A'], [2, 'A'], [3, 'B']], [1], []) answered ['publish', 1]
def relay_step(rows, published, refused):
    return ["publish", rows[0][0]] if rows else ["wait"]
