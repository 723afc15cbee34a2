# misconception: digits are a number
# says: row 104 has the item '7' instead of '007'
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        for row in rows:
            item = row["item"]
            db.execute(
                "INSERT INTO orders VALUES (?, ?, ?)",
                [row["id"], str(int(item)) if item.isdecimal() else item, row["amount"]],
            )
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
