"""Sends a row again if no answer comes, under a key that counts attempts: a restart repeats it, a retry does not."""

import socket
from pathlib import Path


def kept(key, line):
    with socket.create_connection(("127.0.0.1", int(Path("port").read_text())), timeout=10) as server:
        server.sendall(f"{key}\t{line}".encode())
        return server.recv(100) == b"kept\n"


for part in sorted(Path("input").iterdir()):
    for line in part.read_text().splitlines(keepends=True):
        attempt = 1
        while not kept(f"{line.split()[0]}-{attempt}", line):
            attempt += 1
