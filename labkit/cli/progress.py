"""Shows progress on standard error while drivers run; standard output stays free for results."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from labkit.host.processes.events import AnyEvent, DriverFailed, Ended, Failed, Parked
from labkit.runs.progress import Tell, silent, words


@contextmanager
def progress(quiet: bool, steps: int) -> Iterator[Tell]:
    """Yield a function that shows each event of a run; it shows nothing if `quiet`.

    In a terminal the events move a progress bar of `steps` steps; elsewhere each event is one line.
    """
    console = Console(stderr=True)
    if quiet:
        yield silent
    elif console.is_terminal:
        columns = (SpinnerColumn(), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as bar:
            task = bar.add_task("starting", total=steps)

            def show(event: AnyEvent) -> None:
                has_stopped = isinstance(event, Parked | Ended | Failed | DriverFailed)
                bar.update(task, description=words(event), advance=int(has_stopped))

            yield show
    else:
        yield lambda event: console.print("  " + words(event), markup=False, soft_wrap=True)
