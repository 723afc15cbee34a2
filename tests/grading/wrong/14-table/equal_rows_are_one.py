# misconception: two rows with the same item and amount are one row
# says: Without a crash: at-most-once: 2 of 7 rows got lost, the first is number 103
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    for row in rows:
        if not db.execute("SELECT 1 FROM orders WHERE item = ? AND amount = ?", [row["item"], row["amount"]]):
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")
