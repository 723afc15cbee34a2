# misconception: a set in memory knows what was written
# says: must not depend on chance, on a clock
written = set()


def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if (query, batch) not in written:
        db.execute("BEGIN")
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("COMMIT")
        written.add((query, batch))
