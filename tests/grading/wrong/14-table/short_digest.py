# misconception: four hexadecimal digits of a digest tell names apart
# says: 1 of 60 rows got lost, the first is number 980
import hashlib


def write_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    db.execute("BEGIN")
    mark = [hashlib.md5(query.encode()).hexdigest()[:4], batch]
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", mark):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?)", mark)
    db.execute("COMMIT")
