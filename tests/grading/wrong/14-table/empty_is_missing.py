# misconception: an empty item is missing
# says: the first is number 106; there are rows
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    mark = [query, batch]
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", mark):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"] or None, row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", mark)
    db.execute("COMMIT")
