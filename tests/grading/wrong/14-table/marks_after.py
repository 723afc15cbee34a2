# misconception: the marker may come in a transaction of its own, when the rows are safe
# says: Killed in batch 0, before INSERT INTO marks VALUES (?, ?): at-least-once
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
