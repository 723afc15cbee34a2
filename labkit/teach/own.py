"""Test a learner's own sink in a notebook: quickly with a simulated engine, and by the crash test on real Spark."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.judge import Guarantee, Outcome
from labkit.core.options import options_of
from labkit.core.words import columns, nearest, sentence
from labkit.runs.prepare import fresh_folder
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.capstone import EPOCHS, ITEMS, MANY, OTHERS, PUBLIC, QUERIES, alike, moved, numbered
from labkit.teach.exercises.contract import AnswerFailed
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.own_sink.axes import Axis, Place, tried
from labkit.teach.exercises.own_sink.trials import Batches
from labkit.teach.own_file import unwritten
from labkit.view.card import BAD, DIM, GOOD, Card, Html, OnCard, items, para, table
from labkit.view.effects import BROKE, NO_HARM, Row, What, effect_line
from labkit.view.front_end import is_watched, line

if TYPE_CHECKING:
    from labkit.crashtest.claim import Claim
    from labkit.crashtest.ledger import Tell
    from labkit.crashtest.report import Report
    from labkit.crashtest.verdict import Result

KINDS: Mapping[str, tuple[list[Any], list[Any]]] = {"table": ([], []), "folder": ([], []), "writers": EPOCHS}
"""For each kind of store, the sink's arguments before the query's name, for a first query and for a second one.

Only a sink with two writers gets such an argument: the writer's epoch.
"""
QUICK_SECONDS = 1200.0
"""The time limit of a whole quick test in a notebook; on two busy cores it takes about seven minutes."""


@dataclass(frozen=True)
class Tried(OnCard):
    """The results of `lab.try_sink`: for each axis (separately tested property), whether a fault was found.

    A notebook displays them as a card, with the results of kills before each request to the store in the first batch.
    """

    name: str
    axes: Sequence[Axis]
    places: Sequence[Place]
    done: str = "killed"
    """What the test did to the sink: `killed`, or `stopped`, with a newer writer that took over before it continued."""

    def __getitem__(self, axis: str) -> bool:
        """Return whether no fault was found on this axis (separately tested property), such as `a second query`."""
        return {each.axis: not each.wrong for each in self.axes}[axis]

    @property
    def holds(self) -> bool:
        """Whether no run of the sink showed a fault, such as a lost row."""
        return not any(each.wrong for each in self.axes)

    @property
    def kills(self) -> list[str]:
        """A list of guarantees, one for each place in the first batch at which the test killed the sink.

        In a test with two writers, the older one was suspended there, and resumed after the newer one had written.
        """
        return [each.verdict for each in self.places]

    def card(self) -> Card:
        """Return a card with the result on each axis (tested property), the first fault, and each kill in a batch."""
        lines = [(each.axis, str(each.runs or "-"), _outcome(each)) for each in self.axes]
        wrong = [sentence(each.wrong) for each in self.axes if each.wrong]
        runs = sum(each.runs for each in self.axes)
        under = (
            f"{_some(runs, 'run')} with real {_KINDS_OF_SIGNALS[self.done]}; the engine is simulated, the store is real"
        )
        return Card(
            "every axis holds" if self.holds else "not yet",
            para(wrong[0]) if wrong else Html(),
            table(("tested", "runs", "result"), lines),
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


_KINDS_OF_SIGNALS = {"killed": "kills", "stopped": "kills and stops"}


def _outcome(axis: Axis) -> str:
    if not axis.runs:
        return "not tried"
    return "wrong" if axis.wrong else "holds"


def _picture(name: str, places: Sequence[Place], done: str) -> str:
    rows = []
    for each in places:
        rows.append(Row(What.KILL, f"{done} here", verdict=each.verdict))
        rows.append(Row(What.LASTING if each.request else What.EDGE, each.request or "the sink returns"))
        if each.torn:
            could = "" if each.torn != Guarantee.UNKNOWN else ", and then no reader could read the store"
            text = f"killed in the middle of this write{could}"
            rows.append(Row(What.KILL, text, verdict=each.torn))
    return effect_line(rows, title=f"The first batch of {name}, {done} at each place, and the results")


def try_sink(sink: Callable[..., Any], kind: str, *, also: Sequence[str] = (), called: str = "lab.try_sink()") -> Tried:
    """Test a learner's sink as `lab.try_sink` does, also on the axes (separately tested properties) in `also`.

    Raises `InvalidInput` if the kind or the function cannot be used; its message begins with `called`.
    """
    if kind not in KINDS:
        raise InvalidInput(f'lab.try_sink(): kind="{kind}" is not accepted; write "table", "folder" or "writers".')
    name = getattr(sink, "__name__", "sink")
    answer = InNotebook(name, {name: sink})
    usual = _parameters(kind, PUBLIC, "orders", "refunds")
    usual["alike"] = alike("orders-of-the-north", "orders-of-shop", blanks=kind != "folder")
    many = moved(numbered([[(item, 2) for item in ITEMS], *[[("pen", 2)]] * (MANY - 1)]), 100)
    more = [_parameters(kind, many, *pair) for pair in QUERIES]
    try:
        axes, places = tried(answer, usual, name=name, kind=kind, more=more, also=also)
    except (AnswerFailed, Unusable) as error:
        raise InvalidInput(f"{called}: {error}") from None
    return Tried(name, axes, places, "stopped" if kind == "writers" else "killed")


def _parameters(kind: str, batches: Batches, *queries: str) -> dict[str, Any]:
    (epoch, query), (other_epoch, other) = zip(KINDS[kind], queries, strict=True)
    return {"batches": batches, "query": [*epoch, query], "others": OTHERS, "other": [*other_epoch, other]}


@dataclass(frozen=True)
class Tested(OnCard):
    """The results of a crash test on real Spark: of all its runs or, with the option `only`, of the selected ones.

    The HTML pages of the test are in `folder`.
    """

    report: "Report"
    folder: Path

    @property
    def claim(self) -> str:
        """The measured guarantee as text, with a note if not everything was tested."""
        return str(self.report.claim)

    @property
    def violated(self) -> list[str]:
        """The names of the properties that some run violated, such as `duplicate`."""
        return [axis for axis, held in self.report.axes.items() if held == Outcome.VIOLATED.value]

    @property
    def certificate(self) -> Path:
        """The path of the HTML page that states what was measured and what was not."""
        return self.folder / "certificate.html"

    def card(self) -> Card:
        """Return a card with the measured guarantee and the paths of the HTML pages.

        If the option `only` selected the runs, the card says what broke in them, and states no guarantee.
        """
        if self.report.settings.only:
            return self._short()
        report, weakest = self.report, self.report.summary.weakest
        tone = _tone(report.claim)
        why = f"{weakest.title}: {weakest.because}" if weakest else ""
        unknown = [each.unknown for each in report.summary.unknown()]
        axes = f"violated: {', '.join(self.violated)}" if self.violated else "nothing else was violated"
        lines = [
            f"{report.summary.coverage}; {axes}",
            *([sentence(why)] if why else []),
            *[sentence(each) for each in unknown[:2]],
            *[sentence(f"not run: {each}") for each in report.not_run()],
            report.untested,
        ]
        return self._card("Crash test", self.claim, lines, tone, report)

    def _short(self) -> Card:
        from labkit.crashtest.verdict import Group

        report, summary = self.report, self.report.summary
        runs = summary.results
        selected = [each for each in runs if each.group not in (Group.HEALTHY, Group.SEEING)]
        # For a pair of kills, the test also runs the first kill alone; that run counts as a place.
        places = sum(each.group is Group.CRASH for each in runs)
        pairs = sum(each.group is Group.PAIR for each in runs)
        and_pairs = f", and {_some(pairs, 'pair')} of kills" if pairs else ""
        # `summary.weakest` ignores conditions, but a learner who selected one wants to know what it breaks.
        weakest = next((each for each in summary.ranked() if each.violated), None)
        if weakest:
            headline = f"What still breaks: {weakest.title}: {_what_broke(weakest)}"
        elif any(each.guarantee is Guarantee.UNKNOWN for each in runs):
            headline = "The result of a run is unknown"
        elif all(each.group is Group.CRASH for each in selected):
            headline = f"Nothing broke at the {_some(places, 'place')} tried"
        else:
            headline = f"Nothing broke in the {_some(len(selected), 'run')} that you selected"
        lines = [
            sentence(headline),
            *(sentence(f"{each.title}: {_what_broke(each)}") for each in runs if each is not weakest),
            (
                f"No guarantee: {places} of {_some(summary.coverage.found, 'place')} tried{and_pairs}. "
                "A kill at any other place may still break the sink."
            ),
        ]
        word = BROKE if weakest else self.claim
        tone = BAD if weakest else DIM
        return self._card("Short crash test", word, lines, tone, report)

    def _card(self, what: str, word: str, lines: Sequence[str], tone: str, drawn: "Report") -> Card:
        from labkit.crashtest.page import effects_and_kills

        subject = drawn.settings.subject
        lines = [*lines, f"Pages: {self.folder / 'report.html'}, {self.certificate}"]
        return Card(
            word,
            items(lines),
            Html(effects_and_kills(drawn)),
            title=f"{what} of {subject} on real Spark",
            tone=tone,
            plain=[f"{subject}: {word}", *lines],
        )


def _tone(claim: "Claim") -> str:
    if claim.is_stuck:
        return BAD
    if claim.guarantee is Guarantee.EXACTLY_ONCE:
        return GOOD
    return DIM if claim.at_best is Guarantee.EXACTLY_ONCE else BAD


@dataclass(frozen=True)
class Untested(OnCard):
    """A crash test that could not begin, with the reason; nothing is known about the sink's guarantee."""

    subject: str
    why: str
    certificate: Path
    """The path of the page that a crash test would have written; the file does not exist."""
    claim: str = Guarantee.UNKNOWN.value
    violated: Sequence[str] = ()

    def card(self) -> Card:
        """Return a card with the reason why the crash test could not begin."""
        lines = [f"Nothing was tested. {self.why}"]
        return Card(
            self.claim,
            items(lines),
            title=f"Crash test of {self.subject} on real Spark",
            tone=DIM,
            plain=[f"{self.subject}: {self.claim}", *lines],
        )


_BROKE = {
    "lost": "{n} lost",
    "duplicate": "{n} there more than once",
    "unexpected": "{n} there that the sink never received",
    "aborted_read": "{n} seen by a reader, and gone later",
    "precommitted_read": "{n} seen by a reader before the sink had finished",
    "fractured_read": "a reader saw a part of a batch",
    "regression": "a reader saw a value go back",
    "stuck": "the job fails again and again",
}
"""A description of each violated property; `{n}` becomes the number of rows that the judge counted."""


def _what_broke(result: "Result") -> str:
    parts = [_BROKE[axis].format(n=_some(len(result.rows_of(axis)), "row")) for axis in result.violated]
    if result.unknown:
        parts.append(f"{'the rest is ' * bool(parts)}unknown, since {result.unknown}")
    return "; ".join(parts) or NO_HARM


def _some(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def crash_test(subject: str, *, options: Mapping[str, Any] | None = None) -> Tested | Untested:
    """Run a quick crash test on real Spark for `lab.crash_test`, and return its results.

    Raises the errors of a crash test. Returns `Untested` if a server or Java is missing, or if the sink is still a
    stub.
    """
    from labkit.crashtest.campaigns import crash_test as test
    from labkit.crashtest.page import keep
    from labkit.crashtest.settings import Settings

    names = sorted({each.keyword for each in options_of(Settings)} - {"subject"})
    if unknown := [name for name in options or {} if name not in names]:
        raise InvalidInput(f"lab.crash_test() has no parameter {unknown[0][:40]}; {nearest(unknown[0][:40], names)}")
    wanted = {"quick": True, "seconds": QUICK_SECONDS, **(options or {})}
    if "only" in wanted:
        wanted["only"] = _names(wanted["only"])
    folder = fresh_folder("crashtest")
    if stub := unwritten(Path(subject.rpartition(":")[0])):
        why = f"{stub} is not written yet; solve its exercise, then call lab.save_sink() and this function again."
        return Untested(subject, why, folder / "certificate.html")
    try:
        report = test(subject, folder=folder, tell=_teller(), **wanted)
    except ServiceUnavailable as missing:
        shutil.rmtree(folder, ignore_errors=True)
        return Untested(subject, str(missing), folder / "certificate.html")
    keep(report, folder)
    return Tested(report, folder)


def _names(only: object) -> tuple[str, ...]:
    names = [only] if isinstance(only, str) else only
    if isinstance(names, list | tuple) and all(isinstance(one, str) for one in names):
        if names:
            return tuple(names)
        raise InvalidInput("lab.crash_test(): only=[] is empty; list the places at which to kill, or leave `only` out.")
    raise InvalidInput(
        f"lab.crash_test(): only={only!r:.40} is not accepted; write a list of crash points, named as in the report."
    )


def _teller() -> "Tell":
    """Return a callback that shows the progress of a crash test in one changing line, if a person is watching."""
    from labkit.crashtest.ledger import silent

    if not is_watched():
        return silent
    shown = line()

    def tell(what: str, text: str) -> None:
        numbers = re.match(r"run (\d+) of (?:at most )?(\d+)", text)
        if what == "run":
            shown.show(text, int(numbers[1]) - 1 if numbers else 0, int(numbers[2]) if numbers else 1)

    return tell
