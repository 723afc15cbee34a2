# misconception: all queries have one newest writer
# says: A second query after the first, with batches from 0 on: at-most-once
def write_fenced(db, epoch, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("CREATE TABLE IF NOT EXISTS epochs (epoch)")
    db.execute("BEGIN IMMEDIATE")
    newer = db.execute("SELECT 1 FROM epochs WHERE epoch > ?", [epoch])
    if not newer:
        db.execute("INSERT INTO epochs VALUES (?)", [epoch])
        if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
            for row in rows:
                db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
            db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
    return "fenced" if newer else "written"
