"""Compare the durable effects of several pipelines on one page, so that a reader can compare their commit protocols.

Each pipeline's record is the file `effects.json` that `labkit effects --out DIR` writes. Ids and temporary names are
masked, and writes of a file count as one if no call of another kind on this file came in between, because neither the
names nor the number of buffers written belongs to a protocol. A lane groups the effects of one purpose, such as data or
decision. The lanes have the same order for all pipelines; the effects keep each pipeline's own order.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap as broken
from typing import Any

import msgspec

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.effects import without_number
from labkit.crashtest.blackbox.lanes import LANES
from labkit.crashtest.blackbox.xray import LEGEND, MOST_STEPS, Page, drawn, with_state
from labkit.view.spacetime import Diagram, size

COLUMN = 76
"""The width of a pipeline's column in characters, including the name of the lane."""
_TEXT = 40
"""The minimum width of an effect's text in characters; if names of lanes are long, the column becomes wider instead."""
_BETWEEN = "  |  "
_WRITE = "write"


class Seen(msgspec.Struct, frozen=True):
    """A recorded system call with a durable effect, as `effects.json` describes it."""

    lane: str
    name: str
    kind: str
    path: str
    target: str
    synced: bool | None

    @property
    def said(self) -> str:
        """Return the call's name without its running number."""
        return without_number(self.name)

    @property
    def file(self) -> str:
        """Return the file that the call changes (after a rename, its new path), or the server that it sends to."""
        return self.target or self.path


class Record(msgspec.Struct, frozen=True):
    """The durable effects of one pipeline, as `labkit effects` recorded them."""

    command: str
    effects: tuple[Seen, ...]
    notes: tuple[str, ...]

    def folded(self) -> list[Seen]:
        """Return the recorded calls in order of time; successive writes to the same file become one.

        A call of another kind on the file, such as a rename, ends a series of writes: later writes are not merged with
        those before this call.
        """
        kept: list[Seen] = []
        writing: dict[str, int] = {}
        for each in self.effects:
            first = writing.get(each.file) if each.kind == _WRITE else None
            if first is not None:
                both = bool(kept[first].synced and each.synced)
                kept[first] = msgspec.structs.replace(kept[first], synced=both)
                continue
            # A rename also ends the series of writes to the file that it moves.
            for file in (each.path, each.target):
                writing.pop(file, None)
            if each.kind == _WRITE:
                writing[each.file] = len(kept)
            kept.append(each)
        return kept


def read_record(path: Path) -> Record:
    """Read a record that `labkit effects --out` wrote; `path` is the file or its folder.

    Raises `InvalidInput` if there is no record.
    """
    file = path / "effects.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except OSError:
        raise InvalidInput(
            f"--beside {path}: there is no such record; write one with `labkit effects --command CMD --out DIR`."
        ) from None
    except msgspec.DecodeError:
        raise InvalidInput(
            f"--beside {path}: this file is not a record; name a folder that `labkit effects --out` wrote."
        ) from None


class Beside:
    """A comparison, on one page, of the system calls by which several pipelines make data durable."""

    def __init__(self, records: Sequence[Record]) -> None:
        """Prepare to compare the pipelines of these records. Raises `InvalidInput` for fewer than two records."""
        if len(records) < 2:
            raise InvalidInput(
                "--beside compares records of pipelines; name two or more, as in --beside spark --beside flink."
            )
        self._records = records
        self._folded = [each.folded() for each in records]
        used = {each.lane for effects in self._folded for each in effects}
        own = sorted(used - set(LANES))
        self._lanes = [name for name in (*LANES, *own) if name in used]
        # One blank after the longest name, which may be the user's own.
        self._wide = max(map(len, self._lanes), default=0) + 1
        self._column = max(COLUMN, self._wide + _TEXT)

    def text(self) -> str:
        """Return the comparison as text with a column for each pipeline: counts for each lane, then all calls."""
        return "\n".join(self._rows())

    def _rows(self) -> Iterator[str]:
        yield from self._row([self._cell("", each.command) for each in self._records])
        yield ""
        for lane in self._lanes:
            yield from self._row([self._cell(lane, _count(each, lane)) for each in self._folded])
        yield ""
        for line in zip_longest(*self._folded):
            yield from self._row([self._cell(each.lane, _with_state(each)) if each else [] for each in line])
        for place, record in enumerate(self._records, start=1):
            yield from (f"Note on pipeline {place}: {note}" for note in record.notes)

    def _cell(self, lane: str, said: str) -> list[str]:
        lines = broken(said, self._column - self._wide, break_on_hyphens=False)
        heads = [lane, *[""] * len(lines)]
        return [f"{head:<{self._wide}}{line}" for head, line in zip(heads, lines or [""], strict=False)]

    def _row(self, cells: Sequence[Sequence[str]]) -> Iterator[str]:
        for line in zip_longest(*cells, fillvalue=""):
            yield _BETWEEN.join(f"{part:<{self._column}}" for part in line).rstrip()

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON."""
        return {
            "lanes": self._lanes,
            "pipelines": [
                {
                    "command": record.command,
                    "synced": {lane: _count(effects, lane) for lane in self._lanes},
                    "effects": [{"lane": each.lane, "said": each.said, "synced": each.synced} for each in effects],
                    "notes": list(record.notes),
                }
                for record, effects in zip(self._records, self._folded, strict=True)
            ],
        }

    def picture(self) -> str:
        """Return the comparison as an SVG document: a diagram and a list of system calls for each pipeline."""
        names = {name: name for name in self._lanes}
        diagrams = [
            Diagram(
                names, tuple(drawn(each.lane, _with_state(each), synced=each.synced) for each in effects[:MOST_STEPS])
            )
            for effects in self._folded
        ]
        wide = max(size(diagram)[0] for diagram in diagrams)
        page = Page(wide)
        for record, diagram in zip(self._records, diagrams, strict=True):
            page.say(record.command)
            page.draw(diagram)
        page.say(LEGEND)
        for record, effects, diagram in zip(self._records, self._folded, diagrams, strict=True):
            page.say("")
            page.say(record.command)
            page.say_steps(diagram)
            if len(effects) > MOST_STEPS:
                page.say(f"The first {MOST_STEPS} of {len(effects)} are shown.")
        return page.whole("Durable effects of several pipelines", self.text())


def _with_state(each: Seen) -> str:
    return with_state(each.said, each.synced)


def _count(effects: Sequence[Seen], lane: str) -> str:
    of_lane = [each for each in effects if each.lane == lane]
    losable = [each for each in of_lane if each.synced is not None]
    number = f"{len(of_lane)} effect{'' if len(of_lane) == 1 else 's'}"
    if not losable:
        return number
    synced = sum(each.synced is True for each in losable)
    return f"{number}; {synced} of {len(losable)} synced"
