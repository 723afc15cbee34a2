"""The format in which the lab's own processes exchange values: lines of JSON.

Code that runs untrusted submissions has its own format (`labkit.grading.sandbox.inside.frames`).
"""

import json
import os
from typing import TypeVar

import msgspec

Value = TypeVar("Value", bound=msgspec.Struct)


class Unreadable(Exception):
    """A line that does not decode to the expected type."""


def encode(value: msgspec.Struct) -> bytes:
    """Encode a value as one line with its line break.

    Characters that UTF-8 cannot encode, such as half of a surrogate pair in an error message, become question
    marks, because an event must arrive whatever it quotes.
    """
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return plain.encode("utf-8", errors="replace") + b"\n"


def decode(line: bytes, kind: type[Value]) -> Value:
    """Decode the value of one line. Raises `Unreadable`."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"{line[:80]!r}: {error}") from None


def raw(value: object) -> msgspec.Raw:
    """Encode a value for use inside another one that a later reader decodes; without a line break."""
    return msgspec.Raw(msgspec.json.encode(value))


class Lines:
    """Assembles pieces of a stream into lines."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that this piece completes."""
        *lines, self._unread = (self._unread + piece).split(b"\n")
        return lines


def write(descriptor: int, content: bytes) -> None:
    """Write all of the content, bypassing every buffer, so that it is out even if the process stops at once."""
    # A pipe accepts only as many bytes as it has room for, which may be fewer than a long event has.
    while content:
        content = content[os.write(descriptor, content) :]
