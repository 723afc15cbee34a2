"""Reads a trace from a file of unknown origin, up to the largest size of a trace, and validates it."""

from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.sim.trace import MAX_TEXT, Trace, parse, trace_from_json


class TraceFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a JSON file with a trace (the actions of one simulated run), as `Trace.to_json` returns it."""

    model: str
    version: int
    parameters: dict[str, int | bool | str]
    actions: list[str]


_trace_decoder = msgspec.json.Decoder(TraceFile)


def read_trace(path: Path) -> Trace:
    """Return the trace (the actions of one simulated run) in a file, as JSON or text. Raises `InvalidInput`."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror}); name a file that contains a trace.") from None
    if len(raw) > MAX_TEXT:
        raise InvalidInput(f"{path}: this file has more than {MAX_TEXT} bytes; shorten the trace to fewer steps.")
    try:
        return _trace(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _trace(raw: bytes) -> Trace:
    try:
        if not raw.lstrip().startswith(b"{"):
            return parse(raw.decode("utf-8"))
        plain = _trace_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this is not a complete trace ({error}); save it again.") from None
    return trace_from_json(plain.model, plain.version, plain.parameters, plain.actions)
