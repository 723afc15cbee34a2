# misconception: nobody repeats a batch of long ago
# says: 1 of 60 rows got duplicated, the first is number 1000
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        for row in rows:
            item = row["item"]
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], item, row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
        db.execute("DELETE FROM marks WHERE rowid <= (SELECT max(rowid) - 50 FROM marks)")
    db.execute("COMMIT")
