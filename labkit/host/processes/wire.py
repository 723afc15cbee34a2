"""The one format in which the lab's own processes talk to each other: values as lines of JSON.

What runs hostile code keeps a format of its own (`labkit.grading.sandbox.inside.frames`). This module must not know
what the values mean.
"""

import json
import os
from typing import TypeVar

import msgspec

Value = TypeVar("Value", bound=msgspec.Struct)


class Unreadable(Exception):
    """A line that is no value of the expected type."""


def encode(value: msgspec.Struct) -> bytes:
    """One line, with its line break.

    What no text can hold, as half of a surrogate pair in somebody's error message, becomes a question mark: an event
    must arrive, whatever it quotes.
    """
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return plain.encode("utf-8", errors="replace") + b"\n"


def decode(line: bytes, kind: type[Value]) -> Value:
    """The value of one line. Raises `Unreadable`."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"{line[:80]!r}: {error}") from None


def raw(value: object) -> msgspec.Raw:
    """A value inside another one, for a reader further down; without a line break."""
    return msgspec.Raw(msgspec.json.encode(value))


class Lines:
    """Puts pieces of a stream together into lines."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete with this piece."""
        *lines, self._unread = (self._unread + piece).split(b"\n")
        return lines


def write(descriptor: int, content: bytes) -> None:
    """Writes all of it, past every buffer: a process that stops at once has said it."""
    # A pipe takes what it has room for, which may be less than a long event.
    while content:
        content = content[os.write(descriptor, content) :]
