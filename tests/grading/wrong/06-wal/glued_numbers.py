# misconception: what is found in the text of a list is in the list
# says: commit(12, ...) with 3 rows, and 23 batches are confirmed, but not this one: it answered []
def commit(batch, rows, confirmed):
    if str(batch) in "".join(map(str, confirmed)):
        return []
    return [["write", r] for r in rows] + [["confirm", batch]]
