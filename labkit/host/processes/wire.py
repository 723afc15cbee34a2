"""Encodes and decodes the values that labkit's own processes exchange: lines of JSON.

Code that runs untrusted submissions has another format (`labkit.grading.sandbox.inside.frames`).
"""

import json
import os
from typing import TypeVar

import msgspec

Value = TypeVar("Value", bound=msgspec.Struct)


class Unreadable(Exception):
    """Raised for a line of JSON that is not a value of the expected type."""


def encode(value: msgspec.Struct) -> bytes:
    """Return a value as one line of JSON, with its line break.

    Characters that UTF-8 cannot encode, such as half of a surrogate pair in an error message, become question marks.
    """
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return plain.encode("utf-8", errors="replace") + b"\n"


def decode(line: bytes, kind: type[Value]) -> Value:
    """Return the value that one line of JSON encodes. Raises `Unreadable` if the line is not a value of this type."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"{line[:80]!r}: {error}") from None


def raw(value: object) -> msgspec.Raw:
    """Return a value as JSON, for a field that the receiver decodes later than the rest of the message."""
    return msgspec.Raw(msgspec.json.encode(value))


class Lines:
    """Joins the pieces of a byte stream into complete lines."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Add the next piece of the stream, and return the lines that are now complete, without line breaks."""
        *lines, self._unread = (self._unread + piece).split(b"\n")
        return lines


def write(descriptor: int, content: bytes) -> None:
    """Write all of `content` to a file descriptor, without a buffer, which would be lost if this process died."""
    # A pipe may accept only a part of a long event at a time.
    while content:
        content = content[os.write(descriptor, content) :]
