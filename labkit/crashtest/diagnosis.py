"""Explains why a sink is weaker than exactly-once, by lines of its own code, and names a repair.

The harmful crash points of one batch lie between two effects. If these two effects were atomic, no crash could come
between them. This module only reads results and a log of effects.
"""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.crashtest.instrument.effects import BOUNDS, DURABLE, Effect, Kind, Point, Side
from labkit.crashtest.points import place
from labkit.crashtest.rows import Shape
from labkit.crashtest.seeing import first_late
from labkit.crashtest.verdict import Group, Result, Summary


class Recipe(NamedTuple):
    """A repair, and the notebook that explains it."""

    name: str
    sentence: str
    notebook: str


MARKER = Recipe(
    "marker in the same transaction",
    "Write the rows and a row (query id, batch id) in one transaction, and skip a batch whose row exists.",
    "notebooks/06_sinks.ipynb",
)
OVERWRITE = Recipe(
    "overwrite by batch id",
    "Write each batch to a place named by query id and batch id, which a replay overwrites, and make it readable by "
    "one atomic rename.",
    "notebooks/06_sinks.ipynb",
)
STAGE = Recipe(
    "stage and publish",
    "Let tasks only stage their rows where no reader looks; publish those of the tasks that succeeded in one atomic "
    "step.",
    "notebooks/06_sinks.ipynb",
)
DECISION = Recipe(
    "log-then-commit",
    "Pre-commit all parts, take commits/N as the decision, and commit after it, also at the next start.",
    "notebooks/05_two_phase_commit.ipynb",
)
FLUSH = Recipe(
    "flush before you return",
    "Flush, wait for every acknowledgement and let every error rise before the sink returns: commits/N is final.",
    "notebooks/09_kafka.ipynb",
)
QUERY = Recipe(
    "bind the marker to the query",
    "Include the query's id in the key that identifies a batch: a new checkpoint counts its batches from 0 again.",
    "notebooks/06_sinks.ipynb",
)
DETERMINE = Recipe(
    "decide by the row",
    "Let the row itself decide where it goes (its id, a seed by batch id): a replay, and every action on a batch "
    "that is not persisted, then computes the same.",
    "notebooks/06_sinks.ipynb",
)
FORGIVE = Recipe(
    "expect the replay",
    "Expect a replayed batch to find its own leftovers: skip it, overwrite them or clean up first, and raise no error.",
    "notebooks/01_guarantees.ipynb",
)


class Diagnosis(NamedTuple):
    """An explanation of a weak result: a short name for the kind of weakness, the reason, and the repair."""

    code: str
    why: str
    recipe: Recipe


def diagnose(summary: Summary, log: Sequence[Effect], shape: Shape) -> Diagnosis | None:
    """Return the diagnosis of the weakest result, or else of a call that returned too early; None if nothing is wrong.

    `log` are the effects of the run without a crash, `shape` the form of the reader's rows.
    """
    weakest = summary.weakest
    if weakest is None:
        return _late(log)
    if weakest.group is Group.HEALTHY:
        return _healthy(weakest, log)
    crashes = [each for each in summary.results if each.group is Group.CRASH and each.points]
    axis = next(axis for axis in weakest.violated)
    if any(each.rows_of(axis) for each in crashes):
        return _window(axis, crashes, log, shape)
    return _alone(weakest, axis, crashes)


def _alone(weakest: Result, axis: str, crashes: Sequence[Result]) -> Diagnosis:
    """Return the diagnosis of a violation that no single crash of a batch of usual size has shown."""
    if weakest.group is Group.LARGE:
        return _large(weakest)
    if weakest.group is Group.RETRY:
        why = "a task that dies runs again, and the effects of its first attempt remain"
        return Diagnosis("attempts", f"{why}: {weakest.title}", STAGE)
    if weakest.group is Group.PAIR:
        return _recovery(weakest, axis, crashes)
    return _identity(weakest, axis)


def _late(log: Sequence[Effect]) -> Diagnosis | None:
    """Return the diagnosis of an effect that happened after its call had returned; None if there was none."""
    late = first_late(log)
    if late is None:
        return None
    why = f"{late.label()} happened after the call had returned, and commits/N does not wait for it"
    return Diagnosis("returned too early", why, FLUSH)


def _large(result: Result) -> Diagnosis:
    """Return the diagnosis of a violation that only a large batch has shown."""
    if not result.points:
        why = f"{result.title}: {result.because}"
        return Diagnosis("wrong with a large batch", why, MARKER)
    point = result.points[0]
    why = f"a large batch is written in parts that become durable one by one: {point.kind} by line {point.line}"
    return Diagnosis("parts commit separately", why, MARKER)


def _healthy(result: Result, log: Sequence[Effect]) -> Diagnosis:
    if result.rows_of("lost") and result.rows_of("duplicate"):
        why = (
            "without any crash rows are missing and others occur twice: every action on a batch makes its choice again"
        )
        return Diagnosis("chosen twice", why, DETERMINE)
    if result.rows_of("lost"):
        lines = sorted(
            {each.line for each in log if each.kind in (Kind.SEND, Kind.STATEMENT, Kind.WRITE) and each.line}
        )
        where = f" (line {', '.join(map(str, lines))})" if lines else ""
        why = f"rows are missing without any crash: an error is swallowed, rows are not flushed{where}"
        return Diagnosis("lost without a crash", why, FLUSH)
    return Diagnosis("wrong without a crash", f"without any crash {result.because}", DETERMINE)


def _identity(result: Result, axis: str) -> Diagnosis:
    if axis == "lost":
        why = f"{result.title}: the sink took its rows for those of an earlier query, and skipped or replaced them"
        return Diagnosis("key outlives the query", f"{why}, because its memory of a batch outlives the query", QUERY)
    return Diagnosis("identity", f"{result.title}: {result.because}", QUERY if result.stuck else MARKER)


def _recovery(result: Result, axis: str, crashes: Sequence[Result]) -> Diagnosis:
    """Return the diagnosis of a violation that only a second crash, during the recovery, has shown."""
    second = result.points[-1]
    tried = any(_same_place(each.points[0], second) for each in crashes)
    where = f"after {second.kind} by line {second.line}" if second.line else f"at {second}"
    if axis == "regression":
        return Diagnosis("goes back", f"while a batch is replayed, a reader can see a value go back {where}", OVERWRITE)
    if axis.endswith("_read"):
        return Diagnosis(
            "readable too early", f"while a batch is replayed, rows that were readable disappear {where}", MARKER
        )
    single_crash = "one crash there does no harm" if tried else "one crash there was not tried"
    in_recovery = second.batch == result.points[0].batch
    when = "a crash during recovery" if in_recovery else "a crash in the batch after the recovery"
    why = f"{when} does harm, and {single_crash}: {result.title}"
    return Diagnosis("recovery", why, MARKER)


def _same_place(point: Point, other: Point) -> bool:
    """Return whether both crash points are on the same side of the same effect of a call, in whatever batches."""
    return (point.where, point.side, point.file, point.line, point.nth) == (
        other.where,
        other.side,
        other.file,
        other.line,
        other.nth,
    ) and (point.kind in BOUNDS) == (other.kind in BOUNDS)


def _window(axis: str, crashes: Sequence[Result], log: Sequence[Effect], shape: Shape) -> Diagnosis:
    """Return the diagnosis of harm by single crashes, from the two effects between which these crashes lie.

    The batch in which most crashes violate the property `axis` is used.
    """
    batch = max({each.points[0].batch for each in crashes}, key=lambda number: (_harm(axis, crashes, number), -number))
    violating = [each for each in crashes if each.points[0].batch == batch and each.rows_of(axis)]
    lasting = lasting_of(log, batch)
    first, last = violating[0].points[0], violating[-1].points[0]
    happened = [each for each in lasting if _reached(each, first)]
    opened = happened[-1] if happened else None
    closing = next((each for each in lasting if not _reached(each, last)), None)
    if axis == "stuck":
        sentence = opened.label() if opened else "the effects"
        return Diagnosis(
            "stuck on the replay",
            f"the replayed batch finds {sentence} of its first attempt: {violating[0].stuck}",
            FORGIVE,
        )
    if axis == "lost":
        return _loss(opened, closing, late=last.kind is Kind.COMMITS)
    return _extra(axis, opened, closing, lasting, shape)


def _harm(axis: str, crashes: Sequence[Result], batch: int) -> int:
    return sum(bool(each.rows_of(axis)) for each in crashes if each.points[0].batch == batch)


def lasting_of(log: Sequence[Effect], batch: int) -> list[Effect]:
    """Return the effects of a batch that make rows durable or prepare a transaction, in the order in which they
    happened.
    """
    return [
        each
        for each in log
        if each.batch == batch and each.kind in DURABLE | {Kind.PREPARE} and each.driver == 1 and not each.late
    ]


def _reached(effect: Effect, point: Point) -> bool:
    """Return whether the effect has already happened when the job reaches the crash point."""
    if point.kind is Kind.COMMITS:
        return True
    at_point, at_effect = ((place(point.where), point.place), (place(effect.where), effect.place))
    return at_effect < at_point or (at_effect == at_point and point.side is Side.AFTER)


def _span(opened: Effect, closing: Effect) -> str:
    if opened.where == closing.where:
        return f"effects {opened.number}..{closing.number} must be atomic"
    return f"effect {opened.number} of {opened.where} and effect {closing.number} of {closing.where} must be atomic"


def _loss(opened: Effect | None, closing: Effect | None, *, late: bool) -> Diagnosis:
    if opened is not None and closing is not None and opened.line == closing.line:
        why = f"{_span(opened, closing)}: {opened.label()} makes rows durable singly; a replay takes the first for all"
        return Diagnosis("a part is taken for the whole", why, MARKER)
    if opened is not None and closing is not None and not late:
        why = f"{_span(opened, closing)}: {opened.label()} marks the batch as done"
        return Diagnosis(
            "marker before the data", f"{why}, but its rows are durable only after {closing.label()}", MARKER
        )
    clause = f"; the last durable effect was {opened.label()}" if opened else "; it had no durable effect by then"
    return Diagnosis("returned too early", f"the sink returned before its rows were safe{clause}", FLUSH)


def _extra(
    axis: str, opened: Effect | None, closing: Effect | None, lasting: Sequence[Effect], shape: Shape
) -> Diagnosis:
    if opened is None:
        return Diagnosis("replay not recognised", "a replayed batch is written again", MARKER)
    files = opened.kind in (Kind.WRITE, Kind.RENAME, Kind.LINK)
    kafka = opened.kind is Kind.FLUSH or (closing is not None and closing.kind is Kind.FLUSH)
    recipe = OVERWRITE if files else DECISION if kafka else STAGE if opened.where != "call" else MARKER
    if axis.endswith("_read") or axis == "regression":
        return _early(axis, opened, closing, OVERWRITE if files else recipe)
    if closing is not None:
        code = "parts commit separately" if _split(opened, closing) else "marker after the data"
        why = f"{_span(opened, closing)}: {opened.label()} makes data durable"
        return Diagnosis(code, f"{why}, and only {closing.label()} lets a replay recognise it", recipe)
    if opened is not lasting[-1] and opened.where == lasting[-1].where == "call":
        both = f"{opened.label()} and {lasting[-1].label()} make parts of a batch durable"
        return Diagnosis("outputs commit separately", f"{both}, and a replayed batch writes both again", recipe)
    adds = "is added again" if shape is Shape.SUMS else "is written again"
    code = "additive upsert" if shape is Shape.SUMS else "replay not recognised"
    if _split(lasting[0], lasting[-1]) or opened.where.startswith("task"):
        code = "parts commit separately"
    why = (
        f"{opened.label()} and the engine's commits/N cannot be made atomic, and a replayed batch {adds}, "
        "because nothing records that it was written before"
    )
    return Diagnosis(code, why, recipe)


def _split(opened: Effect, closing: Effect) -> bool:
    return opened.where != closing.where and opened.where.startswith("task")


def _early(axis: str, opened: Effect, closing: Effect | None, recipe: Recipe) -> Diagnosis:
    until = f" until {closing.label()}" if closing else ""
    what = {
        "fractured_read": "a part of a batch can be read",
        "precommitted_read": "a batch can be read although the sink has not finished it",
        "aborted_read": "rows can be read that are later removed",
        "regression": "a value can be seen to go back",
    }[axis]
    return Diagnosis(
        "readable too early" if axis != "regression" else "goes back", f"{what} after {opened.label()}{until}", recipe
    )
