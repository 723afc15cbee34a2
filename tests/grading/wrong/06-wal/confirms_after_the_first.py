# misconception: what is begun will be finished
# says: meanwhile a reader saw offset 0 ('hello' = 1) at crash 1 without the rest of its batch
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", rows[0]], ["confirm", batch]] + [["write", offset] for offset in rows[1:]]
