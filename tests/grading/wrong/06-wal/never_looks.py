# misconception: the confirmation is for others to read
# says: Not exactly-once, because 1 of 3 records came out twice or more, first offset 2 ('hello' = 2):
def commit(batch, rows, confirmed):
    return [["write", offset] for offset in rows] + [["confirm", batch]]
