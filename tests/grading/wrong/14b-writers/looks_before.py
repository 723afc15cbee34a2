# misconception: the epoch may be looked at before the transaction begins
# says: after 4 requests, writer 102 replaces it, and writer 99 resumes: the sink returned "written" to the older writer
def write_fenced(db, epoch, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("CREATE TABLE IF NOT EXISTS epochs (query, epoch)")
    newer = db.execute("SELECT 1 FROM epochs WHERE query = ? AND epoch > ?", [query, epoch])
    if newer:
        return "fenced"
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO epochs VALUES (?, ?)", [query, epoch])
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("COMMIT")
    return "written"
