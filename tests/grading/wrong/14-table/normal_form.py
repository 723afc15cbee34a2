# misconception: two names that look alike are one
# says: 1 of 60 rows got lost, the first is number 990
import unicodedata


def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    mark = [unicodedata.normalize("NFC", query), batch]
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", mark):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", mark)
    db.execute("COMMIT")
