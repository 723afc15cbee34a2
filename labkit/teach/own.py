"""A learner's own sink in a notebook: a quick trial at every statement, and the whole crash test on real Spark.

Both are judged elsewhere, by the same judge. This module must not judge, and must not write a sink for anybody.
"""

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.judge import Guarantee, Outcome
from labkit.core.words import columns, nearest, sentence
from labkit.runs.lifecycle import fresh_folder
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.capstone import (
    EPOCHS,
    ITEMS,
    MANY,
    OTHERS,
    PUBLIC,
    QUERIES,
    moved,
    rows,
)
from labkit.teach.exercises.contract import AnswerFailed
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.own_sink.axes import Axis, Place, tried
from labkit.teach.exercises.own_sink.trials import Batches
from labkit.view.card import BAD, DIM, GOOD, Card, Html, bundle, items, para, table
from labkit.view.effects import Row, What, effect_line
from labkit.view.front_end import is_watched, line

if TYPE_CHECKING:
    from labkit.crashtest.ledger import Tell
    from labkit.crashtest.report import Report

KINDS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "table": ([], []),
    "folder": ([], []),
    "writers": EPOCHS,
}
"""What a sink may write to, and what it is told before the name of either query: of two writers, their epochs."""
QUICK_SECONDS = 600.0
"""Seconds of a whole quick test in a notebook; on two quiet cores it takes about two minutes."""


@dataclass(frozen=True)
class Tried:
    """What came of a sink that was killed at every place; shows itself as a card with its first batch."""

    name: str
    axes: Sequence[Axis]
    places: Sequence[Place]
    done: str = "killed"
    """What is done to it at each place: it is killed, or stopped, replaced, and continued."""

    def __getitem__(self, axis: str) -> bool:
        """Whether an axis holds."""
        return {each.axis: not each.wrong for each in self.axes}[axis]

    @property
    def holds(self) -> bool:
        """Whether every axis holds."""
        return not any(each.wrong for each in self.axes)

    @property
    def kills(self) -> list[str]:
        """What came of each kill in the first batch, in order; of two writers: of each stop of the older one."""
        return [each.verdict for each in self.places]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return bundle(self.card().html(), str(self))

    def card(self) -> Card:
        """Axes, the first thing that is wrong, and the first batch with what came of every kill."""
        lines = [(each.axis, str(each.runs or "-"), _came(each)) for each in self.axes]
        wrong = [sentence(each.wrong) for each in self.axes if each.wrong]
        runs = sum(each.runs for each in self.axes)
        under = f"{runs} runs with real {_KINDS_OF_SIGNALS[self.done]}; the engine is simulated, the store is real"
        return Card(
            "every axis holds" if self.holds else "not yet",
            para(wrong[0]) if wrong else Html(),
            table(("tried", "runs", ""), lines),
            Html(_picture(self.name, self.places, self.done)),
            title=f"{self.name}, {self.done} at every place",
            under=under,
            tone=GOOD if self.holds else BAD,
            plain=[
                f"{self.name}: {'every axis holds' if self.holds else 'not yet'}",
                *columns(lines).splitlines(),
                *wrong[:1],
            ],
        )

    def __str__(self) -> str:
        return "\n".join(self.card().plain)


_KINDS_OF_SIGNALS = {"killed": "kills", "stopped": "kills and stops"}


def _came(axis: Axis) -> str:
    if not axis.runs:
        return "not tried"
    return "wrong" if axis.wrong else "holds"


def _picture(name: str, places: Sequence[Place], done: str) -> str:
    rows = []
    for each in places:
        rows.append(Row(What.KILL, f"{done} here", verdict=each.verdict))
        rows.append(
            Row(
                What.LASTING if each.request else What.EDGE,
                each.request or "the sink returns",
            )
        )
        if each.torn:
            could = (
                "" if each.torn != Guarantee.UNKNOWN else ", and no reader could read"
            )
            said = f"killed in the middle of this write{could}"
            rows.append(Row(What.KILL, said, verdict=each.torn))
    return effect_line(
        rows,
        title=f"The first batch of {name}, {done} at each place, and what came of it",
    )


def try_sink(sink: Callable[..., Any], kind: str) -> Tried:
    """Kills a sink at every request of three batches, or stops the older of two writers there.

    A sink that survives this gets twelve batches with items that are easily mistaken, from queries with names that are
    nearly alike: with an older checkpoint, and with a second query. Raises `InvalidInput` for what is no sink.
    """
    if kind not in KINDS:
        raise InvalidInput(
            f'lab.try_sink(): kind="{kind}" will not do; write "table", "folder" or "writers".'
        )
    name = getattr(sink, "__name__", "sink")
    answer = InNotebook(name, {name: sink})
    usual = _given(kind, PUBLIC, "orders", "refunds")
    many = moved(
        rows(" ".join(f"{item}:2" for item in ITEMS), *["pen:2"] * (MANY - 1)), 100
    )
    more = [_given(kind, many, *pair) for pair in QUERIES]
    try:
        axes, places = tried(answer, usual, name=name, kind=kind, more=more)
    except (AnswerFailed, Unusable) as error:
        raise InvalidInput(f"lab.try_sink(): {error}") from None
    return Tried(name, axes, places, "stopped" if kind == "writers" else "killed")


def _given(kind: str, batches: Batches, *queries: str) -> dict[str, Any]:
    """What is handed to a sink: the batches of one query, and those of another one behind it."""
    (epoch, query), (other_epoch, other) = zip(KINDS[kind], queries, strict=True)
    return {
        "batches": batches,
        "query": [*epoch, query],
        "others": OTHERS,
        "other": [*other_epoch, other],
    }


@dataclass(frozen=True)
class Tested:
    """A crash test on real Spark; shows itself as a card. The pages lie in `folder`."""

    report: "Report"
    folder: Path

    @property
    def guarantee(self) -> Guarantee:
        """What was measured."""
        return self.report.guarantee

    @property
    def violated(self) -> list[str]:
        """The axes that are violated."""
        return [
            axis for axis, held in self.report.axes.items() if held is Outcome.VIOLATED
        ]

    @property
    def certificate(self) -> Path:
        """The page that says what was measured and what was not."""
        return self.folder / "certificate.html"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return bundle(self.card().html(), str(self))

    def card(self) -> Card:
        """The guarantee, the weakest run, and where the pages are."""
        report, weakest = self.report, self.report.summary.weakest
        tone = {Guarantee.EXACTLY_ONCE: GOOD, Guarantee.UNKNOWN: DIM}.get(
            self.guarantee, BAD
        )
        why = f"{weakest.title}: {weakest.because}" if weakest else ""
        unknown = [each.unknown for each in report.summary.unknown()]
        axes = (
            f"violated: {', '.join(self.violated)}"
            if self.violated
            else "nothing else was violated"
        )
        lines = [
            f"{report.summary.coverage}; {axes}",
            *([sentence(why)] if why else []),
            *[sentence(each) for each in unknown[:2]],
            report.untested,
            f"Pages: {self.folder / 'report.html'}, {self.certificate}",
        ]
        return Card(
            self.guarantee.value,
            items(lines),
            Html(_line(report)),
            title=f"Crash test of {report.settings.subject} on real Spark",
            tone=tone,
            plain=[f"{report.settings.subject}: {self.guarantee}", *lines],
        )

    def __str__(self) -> str:
        return "\n".join(self.card().plain)


@dataclass(frozen=True)
class Untested:
    """A crash test that could not begin; shows why. Nothing is known of the sink, and there are no pages."""

    subject: str
    why: str
    certificate: Path
    """Where the page would be."""
    guarantee: Guarantee = Guarantee.UNKNOWN
    violated: Sequence[str] = ()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return bundle(self.card().html(), str(self))

    def card(self) -> Card:
        """What is missing, and that nothing was tested."""
        lines = [f"Nothing was tested. {self.why}"]
        return Card(
            self.guarantee.value,
            items(lines),
            title=f"Crash test of {self.subject} on real Spark",
            tone=DIM,
            plain=[f"{self.subject}: {self.guarantee}", *lines],
        )

    def __str__(self) -> str:
        return "\n".join(self.card().plain)


def _line(report: "Report") -> str:
    from labkit.crashtest.page import effects_and_kills

    return effects_and_kills(report)


def crash_test(
    subject: str, *, options: Mapping[str, Any] | None = None
) -> Tested | Untested:
    """A quick crash test of FILE:NAME on real Spark; without Java, or a server that the sink needs, a card says so.

    Raises what else `labkit.crashtest.campaign.crash_test` raises.
    """
    from labkit.crashtest.campaign import crash_test as test
    from labkit.crashtest.kept import keep
    from labkit.crashtest.settings import settings

    known = sorted(inspect.signature(settings).parameters.keys() - {"subject"})
    if unknown := [name for name in options or {} if name not in known]:
        raise InvalidInput(
            f"lab.crash_test() knows no {unknown[0][:40]}; {nearest(unknown[0][:40], known)}"
        )
    folder = fresh_folder("crashtest")
    wanted = {"quick": True, "seconds": QUICK_SECONDS, **(options or {})}
    try:
        report = test(subject, folder=folder, tell=_teller(), **wanted)
    except ServiceUnavailable as missing:
        shutil.rmtree(folder, ignore_errors=True)
        return Untested(subject, str(missing), folder / "certificate.html")
    keep(report, folder)
    return Tested(report, folder)


WRITTEN = "Written by lab.save_sink."
"""By these words a file of `save_sink` is known: it replaces no other."""
SPARK = '''

# How Spark and a reader call the sink above. Written by lab.save_sink.
import sqlite3
from contextlib import closing
from pathlib import Path

from labkit.teach.own_table import Table

STORE = Path({store!r})


def foreach_batch(frame, batch):
    """A foreachBatch function: hands the rows of one batch to the sink."""
    query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [{{"id": row.id, "item": row.key, "amount": row.amount}} for row in frame.collect()]
    with closing(Table(STORE)) as table:
        {name}(table, query, batch, rows)


def read():
    """What everybody can see."""
    with closing(sqlite3.connect(STORE)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchall():
            return []
        return db.execute("SELECT id, item, amount FROM orders").fetchall()


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
'''
"""What a sink for a table needs around it, so that Spark can call it and a reader can read."""


def save_sink(sink: Callable[..., Any], file: str) -> str:
    """Writes a sink's source, with what Spark needs, into a file. Raises `InvalidInput`."""
    path = Path(file)
    try:
        source = textwrap.dedent(inspect.getsource(sink))
    except (OSError, TypeError):
        source = ""
    name = getattr(sink, "__name__", "")
    if not inspect.isfunction(sink) or not source.startswith(f"def {name}("):
        raise InvalidInput(
            "lab.save_sink(): the source of this sink is not known; define it in a cell, with def."
        )
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise InvalidInput(
            f'lab.save_sink(): {file or "an empty name"} is no name of a Python file; write it as in "my_sink.py".'
        )
    if not path.parent.is_dir():
        raise InvalidInput(
            f"lab.save_sink(): there is no folder {path.parent}; make it first, or leave it out."
        )
    around = SPARK.format(name=name, store=f"{path.stem}.db")
    try:
        if path.exists() and WRITTEN not in path.read_text(
            encoding="utf-8", errors="replace"
        ):
            raise InvalidInput(
                f"lab.save_sink(): {file} is there, and is none of its files; choose another name."
            )
        path.write_text(source + around, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"lab.save_sink(): {file} cannot be written: {error.strerror}; name a file in a folder that is there."
        ) from None
    return f"{path}:foreach_batch"


def _teller() -> "Tell":
    """A line that changes where a person looks on; nothing elsewhere."""
    from labkit.crashtest.ledger import silent

    if not is_watched():
        return silent
    shown = line()

    def tell(what: str, said: str) -> None:
        numbers = re.match(r"run (\d+) of (\d+)", said)
        if what == "run" and numbers is not None:
            shown.show(said, int(numbers[1]) - 1, int(numbers[2]))

    return tell
