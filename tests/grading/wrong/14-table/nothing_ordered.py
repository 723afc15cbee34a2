# misconception: a row with the amount 0 orders nothing
# says: at-most-once: 1 of 7 rows got lost, the first is number 104
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    mark = [query, batch]
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", mark):
        for row in rows:
            if row["amount"]:
                db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", mark)
    db.execute("COMMIT")
