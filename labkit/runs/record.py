"""The record of a run: everything that is known of it when its last driver has ended, as one value.

Report, diagram, notebook card and panel are made from it. The history may be millions of rows long, so the record
keeps it in the run's folder and reads it row by row. This module must not open a store, judge, or know Spark.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, beside_verdict
from labkit.core.judge import Verdict
from labkit.core.records import Observation, Reading, Visibility
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario

MOST_KEYS = 1_000
"""Keys in a verdict; the values of more are in a file of their own."""

_OF_A_CRASH = ("point", "batch", "signal", "offset_log", "commit_log")


class _Line(msgspec.Struct):
    """One line of a history: an observation, or a reading, which has its moment alone."""

    reading: str | None = None
    offset: int = 0
    key: str = ""
    value: int = 0
    batch: int = 0
    attempt: int = 0
    visibility: Visibility = Visibility.COMMITTED


_NAMES = ("offset", "key", "value", "batch", "attempt", "visibility")
"""The fields of an observation as the files of a run name them; `attempt` is the incarnation of the driver."""


@dataclass(frozen=True)
class RunRecord:
    """One run that has ended and has been judged. Its rows are in the folder's history alone."""

    scenario: Scenario
    folder: RunFolder
    verdict: Verdict
    crashes: Sequence[Mapping[str, Any]] = ()
    """The evidence of every crash: point, batch, signal, and the checkpoint's files at that moment."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What took how long, by name."""
    drivers: int = 1
    """How many drivers there were."""
    hidden: Sequence[Observation] = ()
    """Rows that are in the end still in transactions of nobody."""
    files: Sequence[str] = ()
    """The files of the checkpoint in the end."""
    released: bool = False
    """Whether the rows were dropped from their server, so that the history is all that is left of them."""
    explanation: Explanation | None = None
    """What failure-free runs have to say of it; None where nobody asked."""
    exposure: Exposure | None = None
    """For how long readers could have read something wrong; None of a history that is too long."""

    @property
    def events(self) -> Iterator[Observation | Reading]:
        """What an outside reader could have seen, in order, with the moments at which one really looked."""
        return read_history(self.folder.history)

    @property
    def rows(self) -> Iterator[Observation]:
        """Every row that an outside reader could have seen, in the order in which it became visible."""
        return (event for event in self.events if isinstance(event, Observation))

    def beside_verdict(self) -> list[tuple[str, str]]:
        """What is to be said beside the verdict; see `labkit.core.exposure.beside_verdict`."""
        return beside_verdict(self.explanation, self.exposure)

    def to_json(self) -> dict[str, Any]:
        """The run as `--json` prints it."""
        crashes = [{name: crash[name] for name in _OF_A_CRASH} for crash in self.crashes]
        return {
            "scenario": self.scenario.to_json(),
            **self.verdict.to_json(),
            **self._final_file,
            "explanation": self.explanation.to_json() if self.explanation else None,
            "exposure": self.exposure.to_json() if self.exposure else None,
            "crash": crashes[0] if crashes else None,
            "crashes": crashes,
            "in_doubt_rows": len(self.hidden),
            "seconds": self._times(),
            "note": self.scenario.note,
            "folder": str(self.folder.path),
            "command": self.scenario.command(),
        }

    def _times(self) -> dict[str, float]:
        times = {name: round(seconds, 3) for name, seconds in self.seconds.items()}
        times["to_crash"] = times.get("to_crash_1", 0.0)
        times.setdefault("to_recovered", 0.0)
        return times

    @cached_property
    def _final_file(self) -> dict[str, Any]:
        """The entry that names the file with the values of many keys; nothing for few."""
        text = final_text(self.verdict)
        if text is None:
            return {}
        return {
            "final": None,
            "final_file": {
                "path": str(self.folder.final),
                "keys": len(self.verdict.final),
                "sha256": hashlib.sha256(text).hexdigest(),
            },
        }


def final_text(verdict: Verdict) -> bytes | None:
    """The last value of every key, for a file of its own; None where there are few keys.

    Sorted, without spaces, in UTF-8: whoever counts for himself can compare the digest.
    """
    if len(verdict.final) <= MOST_KEYS:
        return None
    final = dict(verdict.final.items())
    return json.dumps(final, ensure_ascii=False, separators=(",", ":")).encode()


def written(events: Iterable[Observation | Reading], path: Path) -> Iterator[Observation | Reading]:
    """Passes the events on, and writes each of them into a history as it passes."""
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            is_reading = isinstance(event, Reading)
            line = {"reading": event[0]} if is_reading else dict(zip(_NAMES, event, strict=True))
            file.write(json.dumps(line) + "\n")
            # Written before it is passed on: whatever the judge makes of a row, the
            # file has it.
            yield event


def read_history(path: Path) -> Iterator[Observation | Reading]:
    """What `written` has written, line by line."""
    decode = msgspec.json.Decoder(_Line).decode
    with path.open("rb") as file:
        for text in file:
            line = decode(text)
            if line.reading is not None:
                yield Reading(line.reading)
                continue
            yield Observation(line.offset, line.key, line.value, line.batch, line.attempt, line.visibility)
