"""Prints plain tables of results on standard output."""

from rich.console import Console
from rich.table import Table

WIDE = 600


def table(*columns: str) -> Table:
    """Return an empty table with these columns. It draws no lines between its cells, and wraps long texts."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column, overflow="fold")
    return result


def show(rows: Table) -> None:
    """Print a table; if standard output is not a terminal, print its lines at full width without trailing blanks."""
    console = Console()
    if console.is_terminal:
        console.print(rows)
        return
    console = Console(width=WIDE)
    with console.capture() as printed:
        console.print(rows)
    for line in printed.get().splitlines():
        print(line.rstrip())
