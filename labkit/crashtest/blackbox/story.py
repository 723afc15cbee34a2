"""Describe one run of a pipeline as a timeline, in text and as a picture: starts, effects, crashes and readings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.explanation import READ_AND_ABORTED, Explanation
from labkit.core.judge import Verdict
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.expectation import shown
from labkit.crashtest.blackbox.expectation import text as row_text
from labkit.crashtest.blackbox.points import WITHIN
from labkit.crashtest.blackbox.runs import PipelineRun
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.faults import Fault
from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Step, svg

FIRST, LAST = 4, 8
"""The number of effects of a start that a timeline shows from its beginning and from its end."""


ALONE = "alone"
"""The key of a crash's evidence that says that only one process was killed."""


class Line(NamedTuple):
    """One event in a run's timeline: a Unix time, the actor (`labkit`, `job` or `reader`), and a text."""

    at: float
    who: str
    text: str
    event: Event = Event.STEP


def lines(run: PipelineRun) -> list[Line]:
    """Return the timeline of one run: its starts, effects, crashes and readings in order of time."""
    readings = (Line(each.at, "reader", f"reads {len(each.values)} row(s) ({each.moment})") for each in run.readings)
    return sorted([*_starts(run), *_crashes(run), *readings], key=lambda line: line.at)


def _starts(run: PipelineRun) -> Iterator[Line]:
    for number, start in enumerate(run.starts, start=1):
        began = start.watched.began
        word = "is started" if number == 1 else f"is started again ({number})"
        event = Event.STEP if number == 1 else Event.RESTART
        yield Line(began, "labkit", f"the command {word}", event)
        left_out = len(start.effects) - FIRST - LAST
        for place, effect in enumerate(start.effects):
            if not FIRST <= place < FIRST + left_out:
                yield Line(began + effect.call.seconds, "job", said(effect))
            elif place == FIRST:
                yield Line(began + effect.call.seconds, "job", f"... {left_out} more effects")


def said(effect: Effect) -> str:
    """Describe a system call in a few words: its name, file, size in bytes, old name and line of Python."""
    call = effect.call
    old_name = f"from {Path(call.path).name}" if effect.kind in (CallKind.RENAME, CallKind.LINK) else ""
    size = f"{call.size} bytes" if call.size > 0 else ""
    file = effect.file if effect.file != effect.where else ""
    more = ", ".join(part for part in (file, size, old_name, str(effect.line or "")) if part)
    return f"{effect.name} ({more})" if more else effect.name


def _crashes(run: PipelineRun) -> Iterator[Line]:
    for crash in run.crashes:
        if "fault" in crash:
            yield Line(crash["at"], "labkit", _fault_in_words(crash), Event.CRASH)
            continue
        where = crash["point"] if crash["point"].startswith(WITHIN) else f"before {crash['point']}"
        whom = "one process alone" if ALONE in crash else "every process of the job"
        yield Line(crash["at"], "labkit", f"SIGKILL to {whom} {where}", Event.CRASH)


def _fault_in_words(crash: Mapping[str, Any]) -> str:
    at = f"{crash['fault']} at {crash['point']}"
    match crash["fault"]:
        case Fault.SIGTERM:
            ends = "still runs after the grace period and is killed" if crash["overdue"] else "stops"
            return f"{at}, and the command {ends}"
        case Fault.ONE_PROCESS:
            return f"{at}: SIGKILL to the process that makes the call, and to no other"
    return f"{at}, and the command goes on"


def plain(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """Return each system call with a durable effect as a dict for the JSON report."""
    return [
        {
            "name": each.name,
            "kind": each.kind.value,
            "file": each.file,
            "call": each.call.name,
            "size": each.call.size,
            "line": str(each.line or ""),
            "seconds": round(each.call.seconds, 4),
        }
        for each in effects
    ]


def text(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return a timeline as lines of text, each with the seconds since the first event."""
    begun = lines[0].at if lines else 0.0
    return tuple(f"{line.at - begun:7.2f} s  {line.who:<6}  {line.text}" for line in lines)


def picture(lines: Sequence[Line], title: str) -> str:
    """Return a timeline as a space-time diagram, an SVG document."""
    names = {"labkit": "labkit", "job": "job", "reader": "reader"}
    steps = tuple(Step(line.who, line.event, (), line.text) for line in lines)
    return svg(Diagram(names, steps), title=title)


# The verdict on a run in a sentence that quotes the user's own rows, since these have no offsets and no batches.

COUNTED = {
    "lost": "{n} of {rows} row(s) got lost, for example {row}",
    "duplicate": "{n} of {rows} row(s) came out twice or more, for example {row}",
    "unexpected": "rows came out that nobody expected, for example {row}",
}
MEANWHILE = {"regression": "{row} after a later row of its key", "aborted_read": "{row}, which was gone again later"}


def because(verdict: Verdict, values: Mapping[int, Any], due: int) -> str:
    """Return a sentence with a run's guarantee and the reason for it.

    `values` maps ids to expected rows, and `due` is the number of rows that should be there.
    """
    reasons = _reasons(verdict, COUNTED, values)
    meanwhile = _reasons(verdict, MEANWHILE, values)
    reason = " and ".join(reasons) or f"each of {due} row(s) that are due came out once"
    more = f"; meanwhile the reader saw {' and '.join(meanwhile)}" if meanwhile else ""
    return f"{verdict.guarantee}, because {reason}{more}"


_ROW = re.compile(
    r"offset (-?\d+) \((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\") = -?\d+\)"
    r"(, written by attempt \d+ of batch -?\d+,)?"
)
"""A pattern for a record in an explanation: its offset and value, and the batch and attempt that wrote it."""


def in_their_rows(explanation: Explanation, values: Mapping[int, Any]) -> Explanation:
    """Return the explanation of a run in words that fit a pipeline, which has no offsets, attempts or transactions.

    `values` maps the ids that the test uses to the user's rows. A row that nobody expects has the id -1, and its key is
    the row's text.
    """
    row = explanation.row

    def quoted(match: re.Match[str]) -> str:
        offset = int(match[1])
        if offset in values:
            return shown(row_text(values[offset]))
        return shown(row.key.removesuffix(f"/{offset}")) if row is not None and row.offset == offset else match[0]

    refuted = _ROW.sub(quoted, explanation.refuted)
    return replace(explanation, refuted=refuted.replace(READ_AND_ABORTED, "can be read, and is gone later"))


def _reasons(verdict: Verdict, sentences: dict[str, str], values: Mapping[int, Any]) -> list[str]:
    clauses = []
    for anomaly, sentence in sentences.items():
        places = getattr(verdict, anomaly)
        if places:
            case = verdict.witnesses[anomaly][0]
            row = row_text(values[case.offset]) if case.offset in values else case.key
            short = shown(row.removesuffix(f"/{case.offset}"))
            clauses.append(sentence.format(n=len(places), rows=len(values), row=short))
    return clauses
