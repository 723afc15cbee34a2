"""A small HTTP service that keeps orders in SQLite: `python service.py ROWS.db` prints the address where it listens.

It is not part of the job. Rows and Idempotency-Key are one transaction; a key that it knows gets the same answer again.
"""

import json
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def connect():
    return sqlite3.connect(sys.argv[1], timeout=60)


class Orders(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # the client died while it was sending
        rows = json.loads(body)
        with closing(connect()) as db, db:
            insert = "INSERT INTO keys VALUES (?) ON CONFLICT DO NOTHING"
            if db.execute(insert, (self.headers["Idempotency-Key"],)).rowcount:
                db.executemany("INSERT INTO orders VALUES (:id, :key, :amount)", rows)
        self.answer("stored")

    def do_GET(self):
        with closing(connect()) as db:
            db.row_factory = sqlite3.Row
            self.answer([dict(row) for row in db.execute("SELECT * FROM orders")])

    def do_DELETE(self):
        with closing(connect()) as db, db:
            db.execute("DELETE FROM orders")
            db.execute("DELETE FROM keys")
        self.answer("empty")

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Stays silent."""


if __name__ == "__main__":
    with closing(connect()) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER)")
        db.execute("CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY)")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Orders)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
