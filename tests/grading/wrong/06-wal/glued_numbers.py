# misconception: what is found in the text of a list is in the list
# says: With 3 rows and 23 confirmed batches, but not batch 12: commit(12, ...) answered []
def commit(batch, rows, confirmed):
    if str(batch) in "".join(map(str, confirmed)):
        return []
    return [["write", r] for r in rows] + [["confirm", batch]]
