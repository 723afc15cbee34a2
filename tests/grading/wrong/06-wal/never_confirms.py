# misconception: commits/N is the confirmation
# says: Commits/0 is written, but batch 0 is not confirmed:
def commit(batch, rows, confirmed):
    return [["write", offset] for offset in rows]
