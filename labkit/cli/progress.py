"""What a person sees on standard error while drivers run. Standard output stays free for results."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from labkit.lab import silent
from labkit.spark.runner import Tell

WORDS = {
    "driver": "starting a Spark driver",
    "session": "the driver is up",
    "begun": "{cell}: running",
    "parked": "{cell}: reached its failpoint",
    "killed": "every process of the driver is dead",
    "ended": "{cell}: ran to the end",
    "failed": "{cell}: failed: {because}",
    "died": "the driver ended by itself",
}


@contextmanager
def progress(quiet: bool, steps: int) -> Iterator[Tell]:
    """A `Tell` that shows a moving line with a count of the queries that stopped, or plain lines without a terminal."""
    console = Console(stderr=True)
    if quiet:
        yield silent
    elif console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("starting", total=steps)

            def show(event: str, details: dict[str, Any]) -> None:
                bar.update(task, description=_words(event, details), advance=_advance(event))

            yield show
    else:
        yield lambda event, details: console.print(_words(event, details), markup=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (SpinnerColumn(), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.description}"), console=console, transient=True)


def _advance(event: str) -> int:
    return int(event in ("parked", "ended", "failed"))


def _words(event: str, details: dict[str, Any]) -> str:
    template = WORDS.get(event, event)
    cell = details.get("cell") or "the driver"
    return "  " + template.format(cell=cell, because=details.get("because", ""))
