# misconception: batches are the same if their numbers end alike
# says: With 3 rows and 16 confirmed batches
def commit(batch, rows, confirmed):
    if batch % 100_000 in [each % 100_000 for each in confirmed]:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]
