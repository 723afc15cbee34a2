# misconception: blanks at the end of a text mean nothing
# says: -\n\t' instead of
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        for row in rows:
            item = row["item"]
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], item.rstrip(" "), row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
