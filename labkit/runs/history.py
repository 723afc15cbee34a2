"""Write the history of a run, row by row, while the judge reads it, and keep it in memory if it is short.

The history has every row that readers could have seen. It may have millions of rows, so a long history is never in
memory as a whole.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from labkit.core.records import Observation, Reading, Visibility
from labkit.stores.contract import Clocked, Shown, Store

Seen = Observation | Reading
"""An event of a history: a row that became visible to outside readers, or a moment at which a reader looked."""

MOST_ROWS = 100_000
"""The number of rows up to which a history is kept in memory, together with the times at which rows became visible."""


class _Line(msgspec.Struct):
    """One line of a run's history file: a visible row or, if `reading` is set, a moment at which a reader looked."""

    reading: str | None = None
    offset: int = 0
    key: str = ""
    value: int = 0
    batch: int = 0
    attempt: int = 0
    visibility: Visibility = Visibility.COMMITTED


_NAMES = ("offset", "key", "value", "batch", "attempt", "visibility")
"""The names of an observation's fields in the files of a run; `attempt` is the number of the driver (`incarnation`)."""


@dataclass
class Recording:
    """Reads a store's history (every row that readers could have seen) once, and keeps it in memory if it is short."""

    readings: Sequence[tuple[str, int]]
    """For each moment at which a reader looked: its name (`crash 1`), and the number of rows visible then."""
    keeps_all: bool = False
    """Whether `events` also keeps a history of more than `MOST_ROWS` rows."""
    events: list[Seen] | None = field(default_factory=list)
    """All rows and readings so far; None if the history is too long."""
    shown: list[Shown] | None = field(default_factory=list)
    """For each row the times that the store recorded for it; None if the history is too long."""
    _latest: Shown = field(default_factory=Shown)

    def read(self, store: Store, numbered: Callable[[Iterable[Observation]], Iterator[Observation]]) -> Iterator[Seen]:
        """Yield a store's rows in the order in which they became visible, and a `Reading` whenever a reader looked.

        The reader could then see all rows that are yielded before the `Reading`. The last `Reading` is named `end`.
        `numbered` (`Count.numbered`) gives each row the offset of its expected row.
        """
        rows = store.clocked_history(self._tell) if isinstance(store, Clocked) else store.history()
        waiting = list(self.readings)
        for place, row in enumerate(numbered(rows)):
            # Several readings may have the same position if nothing became visible between them.
            while waiting and waiting[0][1] == place:
                yield self._keep(Reading(waiting.pop(0)[0]))
            if place >= MOST_ROWS:
                self.shown = None
                self.events = self.events if self.keeps_all else None
            elif self.shown is not None:
                self.shown.append(self._latest)
            yield self._keep(row)
        for moment in (*(moment for moment, _ in waiting), "end"):
            yield self._keep(Reading(moment))

    def _tell(self, shown: Shown) -> None:
        self._latest = shown

    def _keep(self, event: Seen) -> Seen:
        if self.events is not None:
            self.events.append(event)
        return event


def written(events: Iterable[Seen], path: Path) -> Iterator[Seen]:
    """Write each event as one line to the history file `path`, and then yield the event unchanged."""
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            is_reading = isinstance(event, Reading)
            line = {"reading": event[0]} if is_reading else dict(zip(_NAMES, event, strict=True))
            file.write(json.dumps(line) + "\n")
            # Written before it is passed on, so that the file contains the row even if the judge refuses it.
            yield event


def read_history(path: Path) -> Iterator[Seen]:
    """Yield the visible rows and the reads of the store (`Reading`) in a history file that `written` wrote."""
    decode = msgspec.json.Decoder(_Line).decode
    with path.open("rb") as file:
        for text in file:
            line = decode(text)
            if line.reading is not None:
                yield Reading(line.reading)
                continue
            yield Observation(line.offset, line.key, line.value, line.batch, line.attempt, line.visibility)
