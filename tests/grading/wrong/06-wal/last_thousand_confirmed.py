# misconception: a batch was confirmed lately, or not at all
# says: With 3 rows and 5000 confirmed batches, including batch 3, so nothing must be written
def commit(batch, rows, confirmed):
    if batch in confirmed[-1000:]:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]
