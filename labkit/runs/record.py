"""The record of a run: everything that is known of it when its last driver has ended, as one value.

Report, diagram, notebook card and panel are made from it. A history may be millions of rows long: the record of such a
run reads it row by row from the run's folder.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, beside_verdict
from labkit.core.judge import Verdict
from labkit.core.records import Observation
from labkit.runs.history import Seen, read_history
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario

MOST_KEYS = 1_000
"""Keys in a verdict; the values of more are in a file of their own."""

_OF_A_CRASH = ("point", "batch", "signal", "offset_log", "commit_log")


@dataclass(frozen=True)
class RunRecord:
    """One run that has ended and has been judged. The rows of a long one are in the folder's history alone."""

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
    kept: Sequence[Seen] | None = field(default=None, repr=False)
    """The events of a short history; None: they are in the folder alone."""

    @property
    def events(self) -> Iterator[Seen]:
        """What an outside reader could have seen, in order, with the moments at which one really looked."""
        return read_history(self.folder.history) if self.kept is None else iter(self.kept)

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

    Sorted, without spaces, in UTF-8, so that somebody who counts the words can compare the digest.
    """
    if len(verdict.final) <= MOST_KEYS:
        return None
    final = dict(verdict.final.items())
    return json.dumps(final, ensure_ascii=False, separators=(",", ":")).encode()
