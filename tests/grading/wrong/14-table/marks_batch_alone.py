# misconception: the number of a batch is enough to know it again
# says: A second query after the first, with batches from 0 on: at-most-once
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    if not db.execute("SELECT 1 FROM marks WHERE batch = ?", [batch]):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
