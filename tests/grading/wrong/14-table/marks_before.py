# misconception: the marker goes first, so that nothing is written twice
# says: Killed in batch 0, before BEGIN: at-most-once
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")
