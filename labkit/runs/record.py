"""The record of a run: all results in one value, from which reports, diagrams and notebook cards are made.

The rows of a long run stay in the history file in its folder, and the record reads them one at a time.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, verdict_notes
from labkit.core.judge import Verdict
from labkit.core.records import Observation
from labkit.runs.history import Seen, read_history
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario

MOST_KEYS = 1_000
"""The largest number of keys whose last values the verdict contains; those of more keys are in a separate file."""

_OF_A_CRASH = ("point", "batch", "signal", "offset_log", "commit_log")


@dataclass(frozen=True)
class RunRecord:
    """All results of a finished run: its options, its verdict, the evidence of its crashes, and its durations."""

    scenario: Scenario
    folder: RunFolder
    verdict: Verdict
    crashes: Sequence[Mapping[str, Any]] = ()
    """The evidence of every crash: failpoint, batch, signal, and the checkpoint's files when the process was killed."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """The durations of the run's phases in seconds, by name."""
    drivers: int = 1
    """The number of drivers that were started."""
    hidden: Sequence[Observation] = ()
    """The rows in transactions that were still open or undecided at the end, so no reader sees them."""
    files: Sequence[str] = ()
    """The files of the checkpoint at the end."""
    released: bool = False
    """Whether the rows have been deleted from their server; then only the history file has them."""
    explanation: Explanation | None = None
    """Whether some run without failures shows readers the same rows; None if this was not examined."""
    exposure: Exposure | None = None
    """For how long readers could have read something wrong; None if the history is too long."""
    kept: Sequence[Seen] | None = field(default=None, repr=False)
    """The rows and readings of a short history; None for a long one, which is only in the run's folder."""

    @property
    def events(self) -> Iterator[Seen]:
        """Every row that readers could have seen, in the order in which the rows became visible.

        Between the rows are the moments (`Reading`) at which a reader looked.
        """
        return read_history(self.folder.history) if self.kept is None else iter(self.kept)

    @property
    def rows(self) -> Iterator[Observation]:
        """Every row that readers could have seen, in the order in which rows became visible."""
        return (event for event in self.events if isinstance(event, Observation))

    def verdict_notes(self) -> list[tuple[str, str]]:
        """Return sentences to show with the verdict, as pairs (label, sentence).

        They explain the verdict, and say for how long readers could have read wrong values.
        """
        return verdict_notes(self.explanation, self.exposure)

    def to_json(self) -> dict[str, Any]:
        """Return the results as the JSON object that `labkit run --json` prints."""
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
        text = final_text(self.verdict)
        if text is None:
            return {}
        digest = hashlib.sha256(text).hexdigest()
        file = {"path": str(self.folder.final), "keys": len(self.verdict.final), "sha256": digest}
        return {"final": None, "final_file": file}


def final_text(verdict: Verdict) -> bytes | None:
    """Return the last value of every key as JSON in UTF-8; None for up to `MOST_KEYS` keys, which the verdict lists.

    The keys are sorted and there are no spaces, so that other programs can compute the SHA-256 digest in the verdict.
    """
    if len(verdict.final) <= MOST_KEYS:
        return None
    final = dict(verdict.final.items())
    return json.dumps(final, ensure_ascii=False, separators=(",", ":")).encode()
