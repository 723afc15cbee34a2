"""Records bytes that the user's code sends over a Python socket, as the libraries requests and redis-py do.

The test does not see what the receiver does with the bytes, so such an effect never counts as durable; it only marks a
possible unseen write. The sockets of PySpark, and of clients whose calls are recorded anyway, are not recorded.
"""

import functools
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder

SENDS = ("send", "sendall", "sendmsg", "sendto")
KNOWN = ("pyspark", "py4j", "kafka", "psycopg", "logging")
"""Packages whose sockets are not recorded: PySpark's own, logging, and clients whose calls are recorded anyway."""


def instrument_socket(module: ModuleType) -> None:
    """Make the methods of `socket.socket` that send record their effects."""
    _instrument(module.socket)


def instrument_ssl(module: ModuleType) -> None:
    """Make the methods of `ssl.SSLSocket` that send record their effects, since they do not call those of
    `socket.socket`.
    """
    _instrument(module.SSLSocket)


def _instrument(owner: Any) -> None:
    for name in SENDS:
        method = getattr(owner, name, None)
        if method is not None and not hasattr(method, "recorded"):
            setattr(owner, name, _around(method))


def _around(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        peer = "" if _is_known() else _peer(self, arguments)
        if not peer:
            return method(self, *arguments, **named)
        with recorder.effect(Kind.NETWORK, peer):
            return method(self, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    return recorded


def _is_known() -> bool:
    """Return whether code of a package in `KNOWN` is anywhere on the call stack, so that the bytes are not recorded."""
    folders = tuple(folder for name in KNOWN if (folder := _folder(name)))
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  # the one way to it
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            return True
        frame = frame.f_back
    return False


def _folder(package: str) -> str:
    """Return the folder from which a package was imported; empty if it was not imported.

    The package's name alone proves nothing, because a user's own folder may have the same name.
    """
    file = sys.modules[package].__file__ if package in sys.modules else None
    return file.removesuffix("__init__.py") if file else ""


def _peer(own: Any, arguments: tuple[Any, ...]) -> str:
    """Return the receiver as `host:port` or as the path of a socket.

    The result is empty for a pair of sockets within one program.
    """
    try:
        address = own.getpeername()
    except OSError:
        address = arguments[-1] if len(arguments) > 1 else ""
    if isinstance(address, tuple) and len(address) > 1:
        return f"{address[0]}:{address[1]}"
    return str(address) if isinstance(address, str) else ""
