"""Sends a row again if no answer comes, under the key of the row, so that the server knows the row again."""

import socket
from pathlib import Path


def kept(key, line):
    with socket.create_connection(("127.0.0.1", int(Path("port").read_text())), timeout=10) as server:
        server.sendall(f"{key}\t{line}".encode())
        return server.recv(100) == b"kept\n"


for part in sorted(Path("input").iterdir()):
    for line in part.read_text().splitlines(keepends=True):
        while not kept(line.split()[0], line):
            pass
