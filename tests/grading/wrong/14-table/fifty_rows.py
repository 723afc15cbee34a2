# misconception: a batch is small enough for one transaction, or may have several
# says: before COMMIT: a reader saw a part of a batch
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, item, amount)")
    for first in range(0, len(rows), 50):
        db.execute("BEGIN")
        for row in rows[first : first + 50]:
            db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("COMMIT")
