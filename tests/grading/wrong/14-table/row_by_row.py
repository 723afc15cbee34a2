# misconception: rows that are looked for one by one need no transaction
# says: before SELECT 1 FROM orders WHERE id = ?: a reader saw a part
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    for row in rows:
        if not db.execute("SELECT 1 FROM orders WHERE id = ?", [row["id"]]):
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
