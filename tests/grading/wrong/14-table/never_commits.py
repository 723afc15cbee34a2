# misconception: what is inserted is there
# says: cannot start a transaction within a transaction
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        db.execute("BEGIN")
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
