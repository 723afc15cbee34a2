"""Ask a Kafka broker for its metadata over a plain socket, to find out whether it is a broker and whether it is ready.

Kafka's protocol is a length, a header and a body, all in network byte order; a metadata request of version 1 without
topics has 30 bytes. Only the stores may use Kafka's client library, so this module implements this one request itself.
"""

import socket
import struct

from labkit.core.errors import InvalidInput

_METADATA, _VERSION, _CORRELATION = 3, 1, 7
_BODY = struct.pack(">hhih6si", _METADATA, _VERSION, _CORRELATION, len(b"labkit"), b"labkit", 0)
"""The request without its length: its header, with the name of this client, and the number of topics, 0."""


def parse_address(address: str, where: str) -> tuple[str, int]:
    """Return host and port from a text `host:port`. For another text, raises `InvalidInput`, which names `where`."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise InvalidInput(
            f"{where}={address[:60]}: this is not the address of a Kafka broker; write host:port, for example "
            "127.0.0.1:9092."
        )
    return host.strip("[]"), int(port)


def is_ready(host: str, port: int) -> bool:
    """Return whether a Kafka broker is ready: it answers within two seconds, and its list of brokers is not empty."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(_BODY)) + _BODY)
            with connection.makefile("rb") as stream:
                size, correlation, brokers = struct.unpack(">iii", stream.read(12))
    except (OSError, struct.error):  # no answer, or only a part of one
        return False
    return bool(size > 8 and correlation == _CORRELATION and 0 < brokers < 10_000)
