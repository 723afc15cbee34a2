# misconception: a batch has at most a thousand rows
# says: With 1050 rows and 5 confirmed batches
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", offset] for offset in rows[:1000]] + [["confirm", batch]]
