"""Determine where a socket leads: to an external server, or to another process of the same command.

The calls of the watched processes show it: `connect` names the server, and a socket that a watched process passes to
`listen` belongs to the command. So labkit looks only once, at `connect`, when the listening socket must already exist.
A socket from `accept`, or one of a pair, leads to no external server.
"""

import ipaddress
import socket
import struct
from pathlib import Path
from typing import NamedTuple

import psutil

from labkit.host.syscalls.calls import HERE
from labkit.host.syscalls.tracee import Tracee, WillFail

_FAMILY = struct.Struct("=H")
_LISTENING = "0A"
_NAME_SERVICE = 53


class Address(NamedTuple):
    """The address of a server: family (`inet` or `unix`), host or path, and port (0 for `unix`)."""

    family: str
    host: str
    port: int = 0

    @property
    def is_name_service(self) -> bool:
        """Return whether this is the address of a DNS server. A request to a DNS server has no lasting effect."""
        return self.family == "inet" and self.port == _NAME_SERVICE

    def __str__(self) -> str:
        if self.family == "unix":
            return f"unix:{self.host}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(tracee: Tracee, raw: bytes) -> Address | None:
    """Return the address in the bytes of a `struct sockaddr`; None if the family is neither IP nor Unix."""
    if len(raw) < _FAMILY.size:
        return None
    family = _FAMILY.unpack_from(raw)[0]
    if family == socket.AF_INET and len(raw) >= 8:
        return Address("inet", str(ipaddress.ip_address(raw[4:8])), int.from_bytes(raw[2:4]))
    if family == socket.AF_INET6 and len(raw) >= 24:
        wide = ipaddress.IPv6Address(raw[8:24])
        return Address("inet", str(wide.ipv4_mapped or wide), int.from_bytes(raw[2:4]))
    if family == socket.AF_UNIX:
        return _unix(tracee, raw[2:])
    return None


def _unix(tracee: Tracee, raw: bytes) -> Address | None:
    if raw.startswith(b"\0"):
        return Address("unix", "@" + raw[1:].decode(errors="replace"))
    name = raw.partition(b"\0")[0].decode(errors="replace")
    try:
        return Address("unix", tracee.absolute(HERE, name)) if name else None
    except WillFail:
        return None


class Peers:
    """Remembers which sockets of the watched command are connected to an external server, and to which server."""

    def __init__(self) -> None:
        self._own: set[int] = set()
        self._own_names: set[str] = set()
        self._servers: dict[int, Address] = {}

    def listens(self, tracee: Tracee, inode: int) -> None:
        """Record that a process of the command listens on this socket. Connections to it then count as internal."""
        self._own.add(inode)
        # The name is a path, or an abstract name such as `@name`, and may contain blanks; some sockets have none.
        for name in (" ".join(row[7:]) for row in _rows(tracee.thread, "unix") if row[6] == str(inode) and row[7:]):
            raw = b"\0" + name[1:].encode() if name[0] == "@" else name.encode()
            if (own := _unix(tracee, raw)) is not None:
                self._own_names.add(str(own))

    def connects(self, tracee: Tracee, inode: int, peer: Address | None) -> None:
        """Record that a process of the command connects the socket `inode` to the address `peer`."""
        self._servers.pop(inode, None)
        if peer is not None and not self._is_own(tracee, peer):
            self._servers[inode] = peer

    def of(self, inode: int) -> Address | None:
        """Return the address of the external server to which a socket is connected; None if there is no such server."""
        return self._servers.get(inode)

    def _is_own(self, tracee: Tracee, peer: Address) -> bool:
        if peer.family == "unix":
            return str(peer) in self._own_names
        if peer.is_name_service:
            return True
        return _is_local(peer.host) and bool(self._own & _listeners(tracee.thread, peer.port))


def _is_local(host: str) -> bool:
    parsed = ipaddress.ip_address(host)
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    cards = psutil.net_if_addrs().values()
    return any(each.address.partition("%")[0] == host for card in cards for each in card)


def _listeners(thread: int, port: int) -> set[int]:
    rows = [*_rows(thread, "tcp"), *_rows(thread, "tcp6")]
    return {int(row[9]) for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port}


def _rows(thread: int, table: str) -> list[list[str]]:
    try:
        text = Path(f"/proc/{thread}/net/{table}").read_text(errors="replace")
    except OSError:
        return []
    return [line.split() for line in text.splitlines()[1:]]
