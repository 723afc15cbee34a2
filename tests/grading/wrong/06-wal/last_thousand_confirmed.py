# misconception: a batch was confirmed lately, or not at all
# says: With 1050 rows and 2001 confirmed batches
def commit(batch, rows, confirmed):
    if batch in confirmed[-1000:]:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]
