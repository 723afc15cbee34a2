"""Show a run as a small notebook card: verdict, expected and actual rows, a reader's view, and details to unfold.

The card takes everything from the run's record and folder, and says "unknown" for data that is missing there. For a
large run it shows the verdict alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.errors import LabError
from labkit.core.failpoints import FailPoint
from labkit.core.moments import NAMES
from labkit.core.records import Record
from labkit.core.strategies import Strategy
from labkit.core.words import sentence
from labkit.runs.pages.code import Code
from labkit.runs.pages.predicted import expected_of
from labkit.runs.pages.simulated import walk_of
from labkit.runs.record import RunRecord
from labkit.spark.options import CheckpointFate
from labkit.view import seen, verdict_parts
from labkit.view.card import BAD, Card, Cell, Html, beside, code, fold, folds, items, para, table
from labkit.view.timeline import Step

SMALL = 100_000
"""The largest size in bytes of a history file, and of an input file, that a card reads."""
MOST_RECORDS = 12
MOST_FILES = 30
MOST_BYTES_OF_A_FILE = 20_000
UNKNOWN = "unknown"


def card(record: RunRecord) -> Card:
    """Return a notebook card, as HTML and as text, with the verdict of a finished run and the evidence of crashes."""
    verdict = record.verdict
    tracks = seen.few(record.events) if _is_small(record.folder.history) else None
    key = seen.worth_seeing(tracks) if tracks else None
    rows = _rows(record)
    head = Card(
        verdict_parts.word(verdict.guarantee),
        plain=(),
        tone=verdict_parts.tone(verdict.guarantee),
        under=verdict_parts.counts(verdict),
    ).head()
    shown = beside(
        head,
        _table(rows) if rows else para(f"{verdict_parts.rows(verdict)} in the end."),
        seen.line(tracks[key], key) if tracks and key is not None else "",
    )
    wrong = dict(record.verdict_notes()).get("wrong")
    return Card(
        "",
        shown,
        para(_reason(record)),
        *([para(record.scenario.note, kind="lkc-under")] if record.scenario.note else []),
        *([para(sentence(wrong), kind="lkc-under")] if wrong else []),
        folds(_folds(record)),
        title=_title(record),
        plain=_plain(record, rows, tracks, key),
    )


def _title(record: RunRecord) -> str:
    planned = " and ".join(str(crash) for crash in record.scenario.crashes)
    return f"{record.scenario.label}, {f'killed at {planned}' if planned else 'not killed'}"


def _reason(record: RunRecord) -> str:
    prediction = expected_of(record)
    if prediction is not None:
        expected, came_so = prediction
        if came_so:
            return expected.reason
    return sentence(verdict_parts.why(record.verdict))


class Row(NamedTuple):
    """One line of the table on a run's card: a row or key, its expected state in the store, and its actual state."""

    name: str
    should: str
    actual: str
    is_wrong: bool


def _table(rows: Iterable[Row]) -> Html:
    cells = ((row.name, row.should, Cell(row.actual, BAD) if row.is_wrong else row.actual) for row in rows)
    return table(("", "should be", "found"), cells)


def _rows(record: RunRecord) -> list[Row]:
    expected = _expected(record)
    if expected is None or not _is_small(record.folder.history):
        return []
    verdict = record.verdict
    if record.scenario.strategy.facts.replaces:
        last = {each.key: each.value for each in expected}
        return [
            Row(_short(key), str(value), str(verdict.final.get(key, "nothing")), verdict.final.get(key) != value)
            for key, value in sorted(last.items())
        ]
    counts = Counter(row.offset for row in record.rows)
    wrong = {*verdict.lost, *verdict.duplicate}
    return [
        Row(f"{_short(each.key)} = {each.value}", "1", str(counts[each.offset]), each.offset in wrong)
        for each in expected
    ]


def _short(key: str) -> str:
    return key if len(key) <= 40 else f"{key[:39]}…"


def _expected(record: RunRecord) -> Sequence[Record] | None:
    if not _is_small(record.scenario.input):
        return None
    try:
        some = list(islice(record.scenario.count.expected(), MOST_RECORDS + 1))
    except (LabError, OSError):
        return None
    return some if len(some) <= MOST_RECORDS else None


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size <= SMALL
    except OSError:
        return False


def _folds(record: RunRecord) -> Iterable[Html]:
    notes = dict(record.verdict_notes())
    judged = [record.verdict.because]
    judged += [notes[name] for name in ("breaks", "drawn") if name in notes]
    yield fold("What the judge says", *(para(sentence(text)) for text in judged))
    if record.crashes:
        yield fold("Was the crash real?", items(_proof(record.scenario.strategy, crash) for crash in record.crashes))
        yield fold("The checkpoint's files at that moment", *_files(record))
    yield fold("The code of the sink", code(Code(record.scenario.strategy).text))
    yield fold("The same run, step by step", *_steps(record))
    yield fold("The command that repeats this run", code(record.scenario.command()))


def _proof(strategy: Strategy, crash: Mapping[str, Any]) -> str:
    killed, is_executor = crash.get("killed"), bool(crash.get("executor"))
    how_many = UNKNOWN if killed is None else len(killed)
    victims = "the executor whose task reached the point" if is_executor else "every process of the driver's session"
    after = ""
    if killed:
        after = " The driver continued." if is_executor else " Afterwards no process of the session was left."
    where = _where(strategy, str(crash.get("point", UNKNOWN)))
    return f"{where} Signal {crash.get('signal', UNKNOWN)} was sent to {victims}; processes killed: {how_many}.{after}"


def _where(strategy: Strategy, point: str) -> str:
    if point not in list(FailPoint):
        return f"{point}."
    reached = FailPoint(point)
    step = strategy.facts.step(reached)
    if step is None:
        return f"{point}: {reached.sentence}"
    return f"{point}, {NAMES[reached]}: {step.words}."


def _files(record: RunRecord) -> Iterable[Html]:
    for nth, crash in enumerate(record.crashes, 1):
        names = crash.get("files")
        if names is None:
            yield para("The files of this moment were not recorded.")
            continue
        left = len(names) - MOST_FILES
        listing = ", ".join(names[:MOST_FILES]) or "none"
        yield para(f"Crash {nth}: {listing}{f', and {left} more' if left > 0 else ''}.")
        batch = crash.get("batch", 0)
        if f"offsets/{batch}" in names:
            yield para(f"The last line of offsets/{batch}, where the batch ends:")
            yield code(_last_line(record, nth, f"offsets/{batch}"))
        if f"commits/{batch}" not in names:
            yield para(f"commits/{batch} did not exist.")


def _last_line(record: RunRecord, nth: int, name: str) -> str:
    is_kept = record.scenario.checkpoint is CheckpointFate.KEPT
    path = (record.folder.checkpoint if is_kept else record.folder.put_aside(nth)) / name
    try:
        if path.stat().st_size <= MOST_BYTES_OF_A_FILE:
            return path.read_text(encoding="utf-8").splitlines()[-1]
    except (OSError, ValueError, IndexError):
        pass
    return UNKNOWN


def _steps(record: RunRecord) -> Iterable[Html]:
    try:
        walk = walk_of(record.scenario)
    except LabError as error:
        yield para(str(error))
        return
    yield para("Step through the same scenario in the simulator:")
    yield code(f'lab.show("{walk.trace}")')


def _plain(
    record: RunRecord, rows: Sequence[Row], tracks: Mapping[str, Sequence[Step]] | None, key: str | None
) -> list[str]:
    verdict = record.verdict
    lines = [
        f"{_title(record)}: {verdict.guarantee}",
        f"  {verdict_parts.counts(verdict)}; {verdict_parts.rows(verdict)}",
    ]
    if len(rows) <= 6:
        lines += [f"  {name}: should be {should}, found {count}" for name, should, count, _ in rows]
    if tracks and key is not None:
        lines.append(f"  a reader saw of {_short(key)}: {seen.in_words(tracks[key])}")
    return [*lines, f"  {_reason(record)}"]
