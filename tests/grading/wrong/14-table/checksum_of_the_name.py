# misconception: two names with equal checksums are one
# says: 1 of 60 rows got lost, the first is number 984
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN IMMEDIATE")
    if not db.execute(
        "SELECT 1 FROM marks WHERE query = ? AND batch = ?", [__import__("zlib").crc32(query.encode()), batch]
    ):
        for row in rows:
            item = row["item"]
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], item, row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", [__import__("zlib").crc32(query.encode()), batch])
    db.execute("COMMIT")
