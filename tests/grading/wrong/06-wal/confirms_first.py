# misconception: the confirmation says what is going to be written
# says: Not exactly-once, because 1 of 3 records got lost, first offset 2 ('hello' = 2):
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["confirm", batch]] + [["write", offset] for offset in rows]
