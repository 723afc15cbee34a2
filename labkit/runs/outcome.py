"""The outcome of a run, as a notebook and the command line show it. It reads the run's record and folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput
from labkit.core.exposure import Exposure
from labkit.core.judge import Verdict
from labkit.core.records import Observation
from labkit.runs.record import RunRecord
from labkit.spark.outside import Mail, Outside
from labkit.view.timeline import timeline

if TYPE_CHECKING:
    from labkit.view.stepper import Player


@dataclass(frozen=True)
class Outcome:
    """The result of one run with crashes: verdict and evidence. A notebook shows it as a card, `print` as text."""

    record: RunRecord

    def __post_init__(self) -> None:
        if not isinstance(self.record, RunRecord):
            raise InvalidInput("You cannot create an Outcome yourself; call lab.crash(), which returns one.")

    @property
    def verdict(self) -> Verdict:
        """The judge's verdict: which rows were lost, duplicated or otherwise wrong, and which guarantee was kept."""
        return self.record.verdict

    @property
    def folder(self) -> Path:
        """The path of the run's folder."""
        return self.record.folder.path

    @property
    def exposure(self) -> Exposure | None:
        """For how long readers could have read wrong values; None if the history was too long to compute this."""
        return self.record.exposure

    @property
    def label(self) -> str:
        """The run's sink, store and commit order (sink or Spark first) in a few words, for a heading."""
        return self.record.scenario.label

    @property
    def seen(self) -> str:
        """One line of text: the values that readers could have seen, by time, with the crashes between them."""
        return timeline(self.record.events)

    def rows(self) -> list[Observation]:
        """Return every row that a reader of the store could have seen, in the order in which rows became visible."""
        return list(self.record.rows)

    def mails(self) -> list[Mail]:
        """Return all mails that the job `shop` sent, sorted by order number; an empty list for any other job."""
        return Outside(self.record.folder.outside).sent()

    @property
    def crashes(self) -> Sequence[Mapping[str, Any]]:
        """The evidence of each crash, oldest first, as a dict with fields such as `point`, `batch` and `signal`."""
        return self.record.crashes

    @property
    def simulated(self) -> "Player":
        """A viewer of the same crash in the simulator.

        Raises `InvalidInput` if the simulator does not model an option of the run.
        """
        from labkit.runs.pages.simulated import at_failpoint

        return at_failpoint(self.record.scenario)

    def checkpoint_file(self, name: str) -> str:
        """Return the text of a file in the checkpoint, such as `offsets/0`. Raises `InvalidInput` if it is missing."""
        path = self.record.folder.checkpoint / name
        try:
            return path.read_text(encoding="utf-8").rstrip("\n")
        except OSError:
            raise InvalidInput(
                f"{path}: there is no such file; crashes[n]['files'] lists the files that existed at a crash."
            ) from None

    def __str__(self) -> str:
        """Return a summary of the run in a few lines."""
        verdict = self.verdict
        final = ", ".join(f"{key}={value}" for key, value in islice(verdict.final.items(), 10)) or "nothing"
        lines = [
            f"{self.label}: {verdict.guarantee}",
            f"  why      {verdict.because}",
            f"  seen     {self.seen}",
            *(f"  {name:<8} {text}" for name, text in self.record.verdict_notes()),
            f"  final    {final} ({verdict.rows} visible row{'' if verdict.rows == 1 else 's'})",
        ]
        for crash in self.crashes:
            logs = f"offsets {crash['offset_log']}, commits {crash['commit_log']}"
            victim = ", an executor" if crash.get("executor") else ""
            lines.append(f"  crash    {crash['point']}@{crash['batch']}{victim}, signal {crash['signal']}; {logs}")
        if self.record.scenario.note:
            lines.append(f"  note     {self.record.scenario.note}")
        return "\n".join([*lines, f"  folder   {self.folder}", f"  again    {self.record.scenario.command()}"])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from labkit.runs.pages.card import card

        return card(self.record)._repr_mimebundle_()

    def to_json(self) -> dict[str, Any]:
        """Return the run's results as the JSON object that `labkit run --json` prints."""
        return self.record.to_json()
