"""A server that keeps each row under its key, and skips a key that it has: `python faults/receiver.py PORT`.

A request is one line, the key and the row; the answer says that the row is kept.
"""

import socketserver
import sys
from pathlib import Path

RECEIVED = Path("store", "received")


class Receiver(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            key = line.split(b"\t")[0]
            kept = RECEIVED.read_bytes().splitlines() if RECEIVED.exists() else []
            if key not in [each.split(b"\t")[0] for each in kept]:
                with RECEIVED.open("ab") as file:
                    file.write(line)
            self.wfile.write(b"kept\n")


class Server(socketserver.TCPServer):
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass  # a client whose connection was cut


with Server(("127.0.0.1", int(sys.argv[1])), Receiver) as server:
    Path("port").write_text(str(server.server_address[1]))
    server.serve_forever()
