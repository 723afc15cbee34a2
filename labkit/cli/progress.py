"""What a person sees on standard error while drivers run. Standard output stays free for results."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from labkit.runs.flight import Tell
from labkit.runs.outcome import silent, words


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
                bar.update(
                    task, description=words(event, details), advance=_advance(event)
                )

            yield show
    else:
        yield lambda event, details: console.print(
            "  " + words(event, details), markup=False, soft_wrap=True
        )


def _bar(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(
        *columns, TextColumn("{task.description}"), console=console, transient=True
    )


def _advance(event: str) -> int:
    return int(event in ("parked", "ended", "failed"))
