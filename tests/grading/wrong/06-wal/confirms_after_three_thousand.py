# misconception: a batch has at most three thousand rows
# says: With 3500 rows and 5 confirmed batches
def commit(batch, rows, confirmed):
    steps = [] if batch in confirmed else [["write", row] for row in rows]
    if steps:
        steps.insert(3_000, ["confirm", batch])
    return steps
