# misconception: blanks at the ends of a text mean nothing
# says: 😀-' instead of
def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY, item TEXT, amount INT)")
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", [row["id"], row["item"].strip(), row["amount"]])
    db.execute("COMMIT")
