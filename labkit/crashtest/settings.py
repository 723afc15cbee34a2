"""What a person may say about a test, checked before anything starts. This module must not start anything."""

from dataclasses import dataclass, field
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.subject import Subject
from labkit.crashtest.instrument.effects import check_id

MOST_BATCHES = 5
"""More batches would not fit into a sum: both queries of a variant have their own digits."""


@dataclass(frozen=True)
class Settings:
    """One test: a sink, its reader, and how much of it is to be tried."""

    subject: Subject
    reader: Subject
    batches: int = 3
    quick: bool = False
    rows: Path | None = None
    options: dict[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    limit: float = 30.0
    """Seconds in which a sink must do something."""
    seconds: float = 0.0
    """Seconds for all runs; what does not fit is unknown. 0: 170 if quick, 900 if not."""

    @property
    def settle(self) -> float:
        """Seconds for which the store is watched after a run."""
        return 0.6 if self.quick else 1.0

    @property
    def budget(self) -> float:
        """Seconds for all runs."""
        return self.seconds or (170.0 if self.quick else 900.0)

    def command(self, only: str = "") -> str:
        """The one command that repeats the test, or one run of it."""
        parts = [f"labkit crashtest {self.subject.file}:{self.subject.name}"]
        if self.reader != Subject(self.subject.file, "read"):
            parts.append(f"--reader {self.reader.file}:{self.reader.name}")
        if self.batches != 3:
            parts.append(f"--batches {self.batches}")
        if self.rows is not None:
            parts.append(f"--rows {self.rows}")
        parts += [f"--option {name}={value}" for name, value in self.options.items()]
        if only:
            parts.append(f"--only {only}")
        elif self.quick:
            parts.append("--quick")
        return " ".join(parts)


def settings(
    subject: str,
    *,
    reader: str | None = None,
    batches: int = 3,
    quick: bool = False,
    rows: Path | None = None,
    options: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    limit: float = 30.0,
    seconds: float = 0.0,
) -> Settings:
    """Settings from what a person typed. Raises `InvalidInput` in one sentence."""
    sink = Subject.parse(subject)
    if not 1 <= batches <= MOST_BATCHES:
        raise InvalidInput(
            f"--batches {batches}: from 1 to {MOST_BATCHES}; two show most, three show a later one."
        )
    if limit <= 0 or seconds < 0:
        raise InvalidInput("--limit and --seconds must be more than 0.")
    for one in only:
        for part in (
            one.split("+") if one not in ("healthy", "retry", *VARIANTS) else ()
        ):
            check_id(part)
    return Settings(
        subject=sink,
        reader=Subject(sink.file, "read")
        if reader is None
        else Subject.parse(reader, "--reader"),
        batches=batches,
        quick=quick,
        rows=rows,
        options=_options(options),
        only=only,
        limit=limit,
        seconds=seconds,
    )


def _options(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InvalidInput(
                f"--option {name[:60]}: write name=value, as in --option path=out."
            )
    return {name: value for name, _, value in pairs}


VARIANTS = {
    "fresh_checkpoint": "a second query with a fresh checkpoint and new rows",
    "two_queries": "two queries with rows of their own at the same time",
    "copied_checkpoint": "an older copy of the checkpoint, restored behind later batches",
    "other_rows": "the same batch id with other rows, as from a source that is not deterministic",
    "stopped_driver": "a driver stopped by SIGSTOP, replaced, and continued",
}
"""What can become of a query's identity, and of a driver that was thought dead."""

DEMANDED = ("fresh_checkpoint", "two_queries", "copied_checkpoint")
"""Those that belong to the guarantee. The others are conditions: a sink cannot always help them by itself."""
