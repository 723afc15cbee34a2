"""`labkit grade`: options and printing only; what is done is in `labkit.grading`, which only a checkout has."""

import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit.core.errors import InvalidInput, ServiceUnavailable

NOT_GRADED = 70
LEVELS = ("best", "namespaces", "user-namespaces", "plain")


def grade(
    submissions: Annotated[
        list[Path], typer.Argument(help="Folders, single notebooks, or ZIP downloads.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The folder with the grades; the same again grades only what has changed."
        ),
    ],
    deadline: Annotated[
        str | None,
        typer.Option(
            help="Mark what was changed later as late, as 2027-01-31T18:00; this machine's time."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Of the hidden variants; default: a new one for a new folder."
        ),
    ] = None,
    isolation: Annotated[
        str,
        typer.Option(
            help="best, namespaces, user-namespaces or plain, which needs --trust."
        ),
    ] = "best",
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Where code cannot be kept apart, run it all the same."
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option(help="How many submissions at a time; 0: one for each core.")
    ] = 0,
    cell_seconds: Annotated[float, typer.Option(help="What one cell may take.")] = 10.0,
    total_seconds: Annotated[
        float, typer.Option(help="What one submission may take.")
    ] = 120.0,
    course: Annotated[
        Path | None,
        typer.Option(
            help="A Python file with exercises of your own; default: the lab's."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.")
    ] = False,
) -> int:
    """Grade submissions: run each in a sandbox, judge its answers outside of that, and write grades, records and pages.

    Exit 0 when everything was graded, whatever the grades; 70 when grading itself failed for a submission.
    """
    need_grader("labkit grade")
    from labkit.grading.asking import Patience
    from labkit.grading.batch import Order, run
    from labkit.grading.course import load
    from labkit.grading.gradebook import write_all
    from labkit.grading.sandbox.inside.jobs import Limits

    _check(isolation, workers, (cell_seconds, total_seconds))
    order = Order(
        submissions, out, course, seed, _deadline(deadline), isolation, trust, workers,
        Limits(cell_seconds=cell_seconds, total_seconds=total_seconds), Patience(),
    )  # fmt: skip
    with _progress(as_json) as tell:
        done = run(order, tell)
    found = write_all(out, load(course))
    rate = 60 * done.graded / done.seconds if done.graded else 0.0
    if as_json:
        counts = {
            "graded": done.graded,
            "kept": done.kept,
            "not_graded": done.failed,
            "records": len(found),
        }
        told = {
            "seed": done.seed,
            "level": done.level,
            "missing": done.missing,
            "a_minute": round(rate, 1),
        }
        print(json.dumps(counts | told))
    else:
        _tell(done, rate, out)
    return NOT_GRADED if done.failed else 0


def need_grader(command: str) -> None:
    """Raises `ServiceUnavailable` in an installation for learners."""
    if importlib.util.find_spec("labkit.grading") is None:
        raise ServiceUnavailable(
            f"{command}: this installation is for learners and has no grader; run it in a checkout of the repository."
        )


def _check(isolation: str, workers: int, seconds: Sequence[float]) -> None:
    if isolation not in LEVELS:
        raise InvalidInput(
            f"--isolation {isolation}: unknown; choose {', '.join(LEVELS)}."
        )
    if not 0 <= workers <= 256:
        raise InvalidInput(f"--workers {workers}: choose 0 to 256.")
    for given in seconds:
        if not 0.1 <= given <= 86_400:
            raise InvalidInput(
                f"{given:g} seconds: choose 0.1 to 86,400 for --cell-seconds and --total-seconds."
            )


def _deadline(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise InvalidInput(
            f"--deadline {text}: not a date and time; write it as 2027-01-31T18:00."
        ) from None


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
        yield lambda done, total, name: console.print(
            f"  {done} of {total}: {name}", markup=False, soft_wrap=True
        )


def _bar(console: Any) -> Iterator[Callable[[int, int, str], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, TextColumn("{task.description}"), console=console, transient=True
    ) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )


def _tell(done: Any, rate: float, out: Path) -> None:
    speed = f" in {done.seconds:.1f} s, {rate:.0f} a minute" if done.graded else ""
    print(
        f"{done.graded} submissions graded{speed}; {done.kept} had not changed; seed {done.seed}."
    )
    if done.level:
        print(f"Isolation: {done.level}.")
    for level, why in done.missing.items():
        print(f"Isolation {level} is missing: {why}")
    if done.failed:
        print(
            f"{done.failed} could not be graded; see {out / 'summary.html'}, and run the same command again."
        )
    print(f"{out / 'grades.csv'}, {out / 'summary.html'}, {out / 'feedback'}")
