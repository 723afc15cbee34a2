"""Defines the options of `labkit grade` as the fields of `Order`, and checks them before anything starts."""

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.core.kinds import Amount, Key, Kind, Many, Number, Switch, Text, Unfit, Word
from labkit.core.options import Need, Options, option
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.host.path_kinds import AnyPath

if TYPE_CHECKING:
    from labkit.grading.submissions import Submission

MOST_SHARDS = 10_000
LEVELS = ("best", "namespaces", "user-namespaces", "plain")
SHARDS = 8
"""The number of shards into which Spark splits the submissions if the user chooses no other number."""

_SECONDS = Amount(0.1, 86_400, "choose 0.1 to 86,400.")
_ALL = Need(
    lambda order: order.shard is None and order.master is None and not order.parts,
    "--only and --exercise grade again, but --shard, --records and --master copy existing grades; leave out the "
    "options of one kind.",
)


@dataclass(frozen=True)
class Patience:
    """The limits for one learner's answer to one exercise: seconds, number of questions, and bytes of replies."""

    call_seconds: float = 5.0
    item_seconds: float = 30.0
    """The seconds that the answer may need for all questions of an exercise together, without the judge's own time."""
    search_seconds: float = 600.0
    """The seconds from the first question to the last, with the judge's time: some answers make its search endless."""
    calls: int = 200_000
    value_bytes: int = 64 * 1024
    total_bytes: int = 64 * 1024**2


@dataclass(frozen=True)
class Shard:
    """One of the parts into which the submissions are divided: part `number`, counted from 1, of `of` parts."""

    number: int
    of: int

    def has(self, one: "Submission") -> bool:
        """Return whether `one` belongs to this shard. All submissions of a student belong to the same shard."""
        digest = hashlib.sha256(one.key.encode()).digest()
        return int.from_bytes(digest[:8]) % self.of == self.number - 1

    def __str__(self) -> str:
        """Return the shard in the form of the option --shard, such as `2/8`."""
        return f"{self.number}/{self.of}"


class Part(Kind[Shard]):
    """The type of the option --shard, which selects one part of the submissions, such as `2/8`."""

    metavar = "I/N"

    def read(self, word: object) -> Shard:
        """Parse the option's text, such as `2/8`. Raises `Unfit` for anything else."""
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", word) if isinstance(word, str) else None
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
            raise Unfit("this is not a shard; write the shard's number and the number of all shards, as in 2/8.")
        return Shard(int(match[1]), int(match[2]))

    def word(self, value: Shard) -> Word:
        return str(value)


@dataclass(frozen=True)
class Order(Options):
    """All options of one `labkit grade` command, its limits, and the options that an earlier command has stored."""

    VERB = "labkit grade"

    given: Sequence[Path] = option(
        Many(AnyPath()), (), "Folders, single notebooks, or ZIP downloads.", argument="SUBMISSIONS", required=True
    )
    out: Path = option(
        AnyPath(),
        Path(),
        "The folder for the grades. The same command again grades only changed submissions.",
        required=True,
    )
    course: Path | None = option(
        AnyPath(), None, "A Python file with your own exercises; default: the exercises of the lab."
    )
    seed: int | None = option(
        Number(), None, "The seed of the hidden variants; default: a random one for each new folder."
    )
    due: str | None = option(
        Text(),
        None,
        "Submissions changed after this time are late, for example 2027-01-31T18:00; local time of this machine.",
        keyword="deadline",
    )
    isolation: str = option(
        Key(LEVELS),
        "best",
        "How to isolate submitted code: best, namespaces, user-namespaces, or plain, which needs --trust.",
    )
    trust: bool = option(Switch(), default=False, help="Run submitted code even if this machine cannot isolate it.")
    workers: int = option(
        Number(0, 256, "choose 0 to 256."), 0, "How many submissions to grade at the same time; 0: one for each core."
    )
    cell_seconds: float = option(_SECONDS, 10.0, "The time limit of one cell.")
    total_seconds: float = option(_SECONDS, 120.0, "The time limit of one submission.")
    roster: Path | None = option(
        AnyPath(),
        None,
        "A CSV file of the class with the columns id, name, email, group, deadline, extension, or a platform's "
        "own export.",
    )
    marks: Sequence[Path] = option(
        Many(AnyPath()),
        (),
        "A CSV file with points and comments that you give by hand; labkit only reads it. May be repeated.",
    )
    requests: Sequence[Path] = option(
        Many(AnyPath()),
        (),
        "A CSV file of regrade requests with the columns student, exercise, why; may be repeated. A file "
        "regrade.txt in a submission is read without this option.",
    )
    rules: Path | None = option(
        AnyPath(),
        None,
        "The assignment's TOML file: which notebooks or exercises count, the deadline, weights, late penalties, "
        "partial credit, rubrics. `labkit release` writes one.",
    )
    only: Sequence[str] = option(
        Many(Text()), (), "Grade this student again, and nobody else; may be repeated.", needs=[_ALL]
    )
    exercises: Sequence[str] = option(
        Many(Text()),
        (),
        "Grade this exercise again, and no other one; may be repeated.",
        needs=[_ALL],
        flag_name="exercise",
    )
    shard: Shard | None = option(
        Part(),
        None,
        "Grade only this part of the submissions, for example 2/8, into its own --out; needs --seed.",
        needs=[
            Need(
                lambda order: order.seed is not None,
                "{written}: add --seed with the same number for all shards; otherwise each shard draws other variants.",
            ),
            Need(
                lambda order: order.master is None,
                "--shard and --master: Spark splits the batch itself; leave one of the two out.",
            ),
        ],
    )
    parts: Sequence[Path] = option(
        Many(AnyPath()),
        (),
        "Copy the grades of a shard: name its output folder, or a folder with several of them; may be repeated.",
        flag_name="records",
    )
    master: str | None = option(
        Text(),
        None,
        "Let Spark run the shards: local[4], or spark://HOST:PORT if all its machines share the folders.",
        check=lambda order: order.check_master(),
    )
    shards: int | None = option(
        Number(1, MOST_SHARDS, f"choose 1 to {MOST_SHARDS:,}."),
        None,
        f"How many shards --master runs; default: {SHARDS}.",
        needs=[
            Need(
                lambda order: order.master is not None,
                "{written}: only --master splits a batch into shards; add --master, or grade one part with --shard.",
            )
        ],
    )
    bounds: Limits = field(default_factory=Limits)
    """The limits of size of one submission; `cell_seconds` and `total_seconds` limit its time."""
    patience: Patience = field(default_factory=Patience)
    deadline: datetime | None = None
    """The deadline of the class, for students without one of their own in the roster."""
    asked: Sequence[str] = ()
    """The exercises of the assignment; if empty, all exercises of the course."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options about the class, such as the roster, which the output folder stores for later commands."""

    @property
    def limits(self) -> Limits:
        """The limits on the size and the running time of one submission."""
        return dataclasses.replace(self.bounds, cell_seconds=self.cell_seconds, total_seconds=self.total_seconds)

    def about_class(self) -> dict[str, str | None]:
        """Return a dict from name to value of the options that describe the students' class, such as the roster.

        The value is None if the user has not given the option. The output folder stores this dict for later commands.
        Paths are absolute, because a later command may run in another directory.
        """
        return {
            "deadline": self.due,
            "roster": _named(self.roster),
            "marks": "\n".join(filter(None, map(_named, self.marks))) or None,
            "requests": "\n".join(filter(None, map(_named, self.requests))) or None,
            "rules": _named(self.rules),
        }

    def check_master(self) -> None:
        """Raise `InvalidInput` if the option --master is not the URL of a Spark master."""
        from labkit.spark.master import check_scheduler

        if self.master is not None:
            check_scheduler(self.master)


def _named(path: Path | None) -> str | None:
    if path is None:
        return None
    # The word `none` removes a stored option, so it is not a path.
    return "none" if str(path) == "none" else str(path.absolute())
