# misconception: commits/N is the confirmation
# says: Batch 0 is not confirmed, and commits/0 is written:
def commit(batch, rows, confirmed):
    return [["write", offset] for offset in rows]
