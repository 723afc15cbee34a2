"""`labkit grade`: options and printing only; what is done is in `labkit.grading`, a distribution of its own."""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit import __version__
from labkit.core.errors import InvalidInput, MissingExtra

NOT_GRADED = 70
MOST_TOLD = 10
"""How many names and questions are printed; all are in the summary."""
SHARDS = 8
"""How many parts Spark gets, if nothing is said."""
LEVELS = ("best", "namespaces", "user-namespaces", "plain")


def grade(
    submissions: Annotated[list[Path], typer.Argument(help="Folders, single notebooks, or ZIP downloads.")],
    out: Annotated[Path, typer.Option(help="The folder with the grades; the same again grades only what has changed.")],
    deadline: Annotated[
        str | None, typer.Option(help="Mark what was changed later as late, as 2027-01-31T18:00; this machine's time.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the hidden variants; default: a new one for a new folder.")
    ] = None,
    isolation: Annotated[
        str, typer.Option(help="best, namespaces, user-namespaces or plain, which needs --trust.")
    ] = "best",
    trust: Annotated[
        bool, typer.Option("--trust", help="Where code cannot be kept apart, run it all the same.")
    ] = False,
    workers: Annotated[int, typer.Option(help="How many submissions at a time; 0: one for each core.")] = 0,
    cell_seconds: Annotated[float, typer.Option(help="What one cell may take.")] = 10.0,
    total_seconds: Annotated[float, typer.Option(help="What one submission may take.")] = 120.0,
    course: Annotated[
        Path | None, typer.Option(help="A Python file with exercises of your own; default: the lab's.")
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with the class: id, name, email, group, deadline, extension; or a platform's own list."
        ),
    ] = None,
    marks: Annotated[
        list[Path] | None,
        typer.Option(
            help="A CSV file with points and comments by hand, which is read and never written; may be repeated."
        ),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="A TOML file with weights, late penalties, partial credit and rubrics.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Grade this student anew and nobody else; may be repeated.")
    ] = None,
    exercise: Annotated[
        list[str] | None, typer.Option(help="Grade this exercise anew and no other one; may be repeated.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="Grade only this part of a batch, as 2/8, into an --out of its own; needs --seed."),
    ] = None,
    taken: Annotated[
        list[Path] | None,
        typer.Option(
            "--records",
            help="Take over what a shard has graded: its --out, or the folder around several; may be repeated.",
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Have Spark run the shards: local[4], or spark://HOST:PORT with shared folders.")
    ] = None,
    shards: Annotated[int | None, typer.Option(help=f"How many shards --master runs; default: {SHARDS}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> int:
    """Grade submissions: run each in a sandbox, judge its answers outside of that, and write grades, records and pages.

    --deadline, --roster, --marks and --rules hold for the folder until something else is said; none takes one back.
    Exit 0 when everything was graded, whatever the grades; 70 when grading itself failed for a submission.
    """
    need_grader("labkit grade")
    from labkit.host.processes.own_python import check_python_path

    check_python_path()
    from labkit.grading import policy
    from labkit.grading.asking import Patience
    from labkit.grading.batch import Order, on_spark, run
    from labkit.grading.course import load
    from labkit.grading.gradebook import keys_called, write_book
    from labkit.grading.sandbox.inside.jobs import Limits
    from labkit.grading.shards import Shard, drop, folder_of
    from labkit.teach.exercises.moved import sentence_on as moved

    _check(isolation, workers, (cell_seconds, total_seconds))
    options = policy.options(
        out,
        {
            "deadline": deadline,
            "roster": _named(roster),
            "marks": "\n".join(filter(None, map(_named, marks))) if marks else None,
            "rules": _named(rules),
        },
    )
    for sentence in filter(None, map(moved, exercise or ())):
        print(sentence, file=sys.stderr)
    of_class = policy.read(out, options, load(course))
    part = None if shard is None else Shard.parse(shard)
    _check_shards(part, seed, master, shards)
    count = SHARDS if shards is None else shards
    if (part is not None or master is not None or taken) and (only or exercise):
        raise InvalidInput(
            "--only and --exercise grade anew what shards would leave as it is; leave --shard, "
            "--records or --master out."
        )
    anew = [key for word in only or () for key in keys_called(out, load(course), of_class, word)]
    order = Order(
        submissions, out, course, seed, of_class.deadline, isolation, trust, workers,
        Limits(cell_seconds=cell_seconds, total_seconds=total_seconds), Patience(),
        anew, exercise or (), options, part, taken or (),
    )  # fmt: skip
    if master is not None:
        order = on_spark(order, master, count)
    with _progress(as_json) as tell:
        done = run(order, tell)
    if part is not None:
        return _tell_shard(done, str(part), out, as_json=as_json)
    if master is not None:
        drop(folder_of(out))
    found, book = write_book(out, load(course), of_class)
    rate = 60 * done.graded / done.seconds if done.graded else 0.0
    if as_json:
        counts = {
            "graded": done.graded,
            "kept": done.kept,
            "taken_over": done.taken,
            "not_graded": done.failed,
            "records": len(found),
            "missing_students": [row.name for row in book.missing],
            "unknown_students": [row.name for row in book.unknown],
            "to_settle": book.doubts,
        }
        told = {"seed": done.seed, "level": done.level, "missing": done.missing, "a_minute": round(rate, 1)}
        print(json.dumps(counts | told))
    else:
        _tell(done, rate, out)
        _tell_class(book, out)
    return NOT_GRADED if done.failed else 0


def _check_shards(part: Any, seed: int | None, master: str | None, count: int | None) -> None:
    from labkit.grading.shards import MOST
    from labkit.spark.master import check_scheduler

    if part is not None and seed is None:
        raise InvalidInput(
            f"--shard {part}: give it --seed, too, the same for all shards: they would draw different variants."
        )
    if part is not None and master is not None:
        raise InvalidInput("--shard and --master: Spark cuts the batch up itself; leave one of them out.")
    if count is not None and master is None:
        raise InvalidInput(
            f"--shards {count}: only --master cuts a batch up itself; name one, or one part with --shard."
        )
    if count is not None and not 1 <= count <= MOST:
        raise InvalidInput(f"--shards {count}: choose 1 to {MOST:,}.")
    if master is not None:
        check_scheduler(master)


def _tell_shard(done: Any, part: str, out: Path, *, as_json: bool) -> int:
    """What a shard says: it makes no table and no page, since it knows only its own."""
    if as_json:
        counts = {"graded": done.graded, "kept": done.kept, "taken_over": done.taken}
        told = {"not_graded": done.failed, "seed": done.seed, "level": done.level}
        print(json.dumps({"shard": part} | counts | told))
    else:
        print(
            f"Shard {part}: {done.graded} submissions graded, {done.kept + done.taken} were there, "
            f"{done.failed} could not be graded. Next: the same command without --shard, with --records {out} "
            "and those of all other shards."
        )
    return NOT_GRADED if done.failed else 0


def _named(path: Path | None) -> str | None:
    """A file as it is remembered: from wherever the next command is typed."""
    if path is None:
        return None
    return "none" if str(path) == "none" else str(path.absolute())


def _tell_class(book: Any, out: Path) -> None:
    """Who is missing, and what only the instructor can settle."""
    if book.missing:
        names = ", ".join(row.name for row in book.missing[:MOST_TOLD])
        more = len(book.missing) - MOST_TOLD
        print(
            f"{len(book.missing)} of the roster have handed in nothing: "
            f"{names}{f' and {more} more' if more > 0 else ''}."
        )
    for doubt in book.doubts[:MOST_TOLD]:
        print(f"To settle: {doubt}")
    if len(book.doubts) > MOST_TOLD:
        print(f"To settle: {len(book.doubts) - MOST_TOLD} more in {out / 'summary.html'}.")
    by_hand = sum(bool(row.open) for row in book.rows)
    if by_hand:
        print(f"{by_hand} students have texts that nobody has read: {out / 'by_hand' / 'texts.html'}.")


def need_grader(command: str) -> None:
    """Raise `MissingExtra` unless the grader is installed, a distribution that learners do not get."""
    if importlib.util.find_spec("labkit.grading") is None:
        raise MissingExtra(f"{command} needs the grader: pip install labkit-grading=={__version__}.")


def _check(isolation: str, workers: int, seconds: Sequence[float]) -> None:
    if isolation not in LEVELS:
        raise InvalidInput(f"--isolation {isolation}: unknown; choose {', '.join(LEVELS)}.")
    if not 0 <= workers <= 256:
        raise InvalidInput(f"--workers {workers}: choose 0 to 256.")
    for given in seconds:
        if not 0.1 <= given <= 86_400:
            raise InvalidInput(f"{given:g} seconds: choose 0.1 to 86,400 for --cell-seconds and --total-seconds.")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on standard error, or a line for each submission where that is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda *_: None
    elif console.is_terminal:
        yield from _bar(console)
    else:
        yield lambda done, total, name: console.print(f"  {done} of {total}: {name}", markup=False, soft_wrap=True)


def _bar(console: Any) -> Iterator[Callable[[int, int, str], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


def _tell(done: Any, rate: float, out: Path) -> None:
    speed = f" in {done.seconds:.1f} s, {rate:.0f} a minute" if done.graded else ""
    taken = f" {done.taken} taken over;" if done.taken else ""
    print(f"{done.graded} submissions graded{speed};{taken} {done.kept} had not changed; seed {done.seed}.")
    if done.level:
        print(f"Isolation: {done.level}.")
    if done.level == "plain":
        print(
            "These grades are not safe: at this level submitted code runs as you, and can change "
            "the records of everybody."
        )
    for level, why in done.missing.items():
        print(f"Isolation {level} is missing: {why}")
    if done.failed:
        print(
            f"{done.failed} could not be graded; see {out / 'summary.html'}, and run the same command again: "
            "what fails three times counts nothing until you give points by hand."
        )
    print(f"{out / 'grades.csv'}, {out / 'summary.html'}, {out / 'feedback'}")
