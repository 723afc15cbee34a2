# misconception: the offsets of a batch follow one another
# says: answered [['write', 1000], ['write', 1001], ['write', 1002], ['confirm', 12]]
def commit(batch, rows, confirmed):
    if batch in confirmed:
        return []
    return [["write", offset] for offset in range(rows[0], rows[-1] + 1)] + [["confirm", batch]]
