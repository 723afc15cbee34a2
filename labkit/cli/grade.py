"""Prints the results of `labkit grade`; `labkit.grading`, a separate distribution, does the grading."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labkit.cli.common import Json, need_grader, parameter, typed_options
from labkit.core.options import options_of, with_arguments
from labkit.host.processes.own_python import check_python_path

need_grader("labkit grade")

from labkit.grading.order import Order  # noqa: E402  # the line above says what to install if this is missing

if TYPE_CHECKING:
    from labkit.grading.grade import Graded

NOT_GRADED = 70
MOST_LISTED = 10
"""The largest number of students or questions that `labkit grade` prints; summary.html contains all."""


def grade(context: typer.Context, *, as_json: Json = False, **words: object) -> int:
    """Grade submitted notebooks: run each in a sandbox, judge its answers outside, and write grades and pages.

    The output folder remembers --deadline, --roster, --marks and --rules; `--deadline none`, for example, removes the
    deadline. Exit 0 if everything was graded, whatever the grades; 70 if the grading itself failed for a submission.
    """
    need_grader("labkit grade")
    check_python_path()
    from labkit.grading.grade import grade
    from labkit.teach.exercises.moved import sentence_on

    order = Order.plan(typed_options(context, options_of(Order), words))
    for sentence in filter(None, map(sentence_on, order.exercises)):
        print(sentence, file=sys.stderr)
    with _progress(as_json) as tell:
        graded = grade(order, tell)
    if order.shard is not None:
        return _tell_shard(graded.done, str(order.shard), order.out, as_json=as_json)
    _tell_all(graded, order.out, as_json=as_json)
    return NOT_GRADED if graded.done.failed else 0


grade = with_arguments(grade, [parameter(each) for each in options_of(Order)])


def _tell_all(graded: "Graded", out: Path, *, as_json: bool) -> None:
    done, book = graded.done, graded.book
    assert book is not None
    rate = 60 * done.graded / done.seconds if done.graded else 0.0
    if not as_json:
        _tell(done, rate, out)
        _tell_class(book, out)
        return
    counts = _counts(done) | {
        "records": len(graded.records),
        "missing_students": [row.name for row in book.missing],
        "unknown_students": [row.name for row in book.unknown],
        "to_settle": book.doubts,
    }
    details = {"seed": done.seed, "level": done.level, "missing": done.missing, "a_minute": round(rate, 1)}
    print(json.dumps(counts | details))


def _tell_shard(done: Any, part: str, out: Path, *, as_json: bool) -> int:
    """Print how much of one shard (a part of all submissions) was graded, and return the exit code."""
    if as_json:
        print(json.dumps({"shard": part} | _counts(done) | {"seed": done.seed, "level": done.level}))
    else:
        print(
            f"Shard {part}: {done.graded} submissions graded, {done.kept + done.taken} had been graded before, "
            f"{done.failed + done.unread} could not be graded. Next: the same command without --shard, with "
            f"--records {out} and those of all other shards."
        )
    return NOT_GRADED if done.failed else 0


def _counts(done: Any) -> dict[str, Any]:
    return {
        "graded": done.graded,
        "kept": done.kept,
        "taken_over": done.taken,
        "not_graded": done.failed + done.unread,
        "failed": done.failed,
        "unread": done.unread,
    }


def _tell_class(book: Any, out: Path) -> None:
    """Print how many students are late, which have handed in nothing, and what the instructor has to settle.

    Also print the paths of the files in which the instructor can settle them.
    """
    from labkit.grading import marks
    from labkit.grading.gradebook import BY_HAND

    late = sum(row.late for row in book.rows)
    if late:
        print(f"{late} of {sum(bool(row.records) for row in book.rows)} students are late.")
    if book.missing:
        names = ", ".join(row.name for row in book.missing[:MOST_LISTED])
        more = len(book.missing) - MOST_LISTED
        print(
            f"{len(book.missing)} students of the roster have handed in nothing: "
            f"{names}{f' and {more} more' if more > 0 else ''}."
        )
    for doubt in book.doubts[:MOST_LISTED]:
        print(f"To settle: {doubt}")
    if len(book.doubts) > MOST_LISTED:
        print(f"To settle: {len(book.doubts) - MOST_LISTED} more questions in {out / 'summary.html'}.")
    if book.doubts:
        print(f"A spreadsheet for points by hand: {marks.templates(out / BY_HAND)[-1]}.")
    by_hand = sum(bool(row.open) for row in book.rows)
    if by_hand:
        print(f"{by_hand} students have texts that you have not scored: {out / 'by_hand' / 'texts.html'}.")
    asking = sum(bool(row.asking) for row in book.rows)
    if asking:
        print(f"{asking} students wait for an answer to a regrade request: {out / 'by_hand' / 'texts.html'}.")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function that shows progress on stderr: how many submissions are done, how many there are, and a name.

    It draws a bar on a terminal, and otherwise prints one line for each submission. With `quiet` it shows nothing.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda *_: None
    elif console.is_terminal:
        yield from _bar(console)
    else:
        yield lambda done, total, name: console.print(f"  {done} of {total}: {name}", markup=False, soft_wrap=True)


def _bar(console: Any) -> Iterator[Callable[[int, int, str], None]]:
    from rich import progress

    kinds = (progress.BarColumn, progress.MofNCompleteColumn, progress.TimeElapsedColumn, progress.TimeRemainingColumn)
    columns = (*(each() for each in kinds), progress.TextColumn("{task.description}"))
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


def _tell(done: Any, rate: float, out: Path) -> None:
    speed = f" in {done.seconds:.1f} s, {rate:.0f} a minute" if done.graded else ""
    taken = f" {done.taken} taken over from --records;" if done.taken else ""
    print(f"{done.graded} submissions graded{speed};{taken} {done.kept} had not changed; seed {done.seed}.")
    if done.level:
        print(f"Isolation: {done.level}.")
    if done.level == "plain":
        print(
            "These grades are not safe: at this level submitted code runs with your rights and can "
            "change everybody's records."
        )
    for level, why in done.missing.items():
        print(f"Isolation {level} is not available: {why}")
    if done.unread:
        print(f"{done.unread} not graded, because the files contain no readable notebook: see {out / 'summary.html'}.")
    if done.failed:
        print(
            f"{done.failed} submissions could not be graded; see {out / 'summary.html'}, and repeat the same command. "
            f"A submission that fails three times gets no points until you give some in {out / 'by_hand'}."
        )
    print(f"{out / 'grades.csv'}, {out / 'summary.html'}, {out / 'feedback'}")
