"""Sends a part and its name in one transaction, and again if no answer comes; only a start asks for the last name."""

import socket
from pathlib import Path


def ask(request):
    while True:
        with socket.create_connection(("127.0.0.1", int(Path("port").read_text())), timeout=10) as server:
            server.sendall(f"{request}\n".encode())
            answer = server.recv(100)
        if answer:
            return answer.decode().strip()


done = ask("")
for part in sorted(Path("input").iterdir()):
    if part.name > done:
        ask("\t".join([part.name, *part.read_text().splitlines()]))
