# misconception: names that differ in their case alone are one name
# says: 2 of 60 rows got lost, the first is number 997
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    mark = [query.lower(), batch]
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", mark):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", mark)
    db.execute("COMMIT")
