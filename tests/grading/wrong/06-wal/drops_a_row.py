# misconception: a batch has one row
# says: meanwhile a reader saw offset 0 ('hello' = 1) at end without the rest of its batch
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", rows[0]], ["confirm", batch]]
