"""A server that keeps rows and the name of the last part in one transaction: `python faults/ledger.py PORT`.

A request is one line: the name of a part and its rows. An empty request asks for the name of the last part.
"""

import socketserver
import sqlite3
import sys
from contextlib import closing
from pathlib import Path


class Ledger(socketserver.StreamRequestHandler):
    def handle(self):
        name, *rows = self.rfile.readline().decode().rstrip("\n").split("\t")
        with closing(sqlite3.connect("store/rows.db", isolation_level=None)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER, key TEXT)")
            db.execute("CREATE TABLE IF NOT EXISTS last (part TEXT)")
            if name:
                db.execute("BEGIN")
                db.executemany("INSERT INTO rows VALUES (?, ?)", [row.split() for row in rows])
                db.execute("DELETE FROM last")
                db.execute("INSERT INTO last VALUES (?)", [name])
                db.execute("COMMIT")
            last = db.execute("SELECT part FROM last").fetchone()
        self.wfile.write(f"{last[0] if last else ''}\n".encode())


class Server(socketserver.TCPServer):
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass  # a client whose connection was cut


with Server(("127.0.0.1", int(sys.argv[1])), Ledger) as server:
    Path("port").write_text(str(server.server_address[1]))
    server.serve_forever()
