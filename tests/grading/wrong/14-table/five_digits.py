# misconception: the last digits tell two ids apart
# says: 2 of 60 rows got lost, the first is number 204801000
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS keys (key PRIMARY KEY)")
    db.execute("BEGIN")
    for row in rows:
        key = [row["id"] % 100_000]
        if not db.execute("SELECT 1 FROM keys WHERE key = ?", key):
            db.execute("INSERT INTO keys VALUES (?)", key)
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")
