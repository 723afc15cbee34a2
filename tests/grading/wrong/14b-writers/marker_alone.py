# misconception: a marker keeps a second writer out
# says: rows that the sink never received; the sink returned "written" to the older writer
def write_fenced(db, epoch, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("CREATE TABLE IF NOT EXISTS epochs (query, epoch)")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
    return "written"
