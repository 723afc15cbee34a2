# misconception: a repeated batch has its rows in the same order, so a count says where to go on
# says: Killed in batch 0, before INSERT INTO orders VALUES (?, ?, ?): none
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    first = min(row["id"] for row in rows)
    [[there]] = db.execute("SELECT count(*) FROM orders WHERE id >= ?", [first])
    for row in rows[there:]:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
