# misconception: the marker needs to be in the last of several transactions only
# says: 50 of 60 rows got duplicated, the first is number 501
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    db.execute("BEGIN")
    for number, row in enumerate(rows):
        if number == 50:
            db.execute("COMMIT")
            db.execute("BEGIN")
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
