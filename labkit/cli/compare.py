"""Defines `labkit compare`, which shows how two reports of a crash test differ."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    report: Annotated[Path, typer.Argument(help="A report of `labkit crashtest --json`, or report.json of --out.")],
    later: Annotated[Path | None, typer.Argument(help="A later report on the same sink or pipeline.")] = None,
) -> int:
    """Print, as Markdown for a comment on a pull request, how two reports of a crash test differ, or sum up one report.

    Exit codes: 0 not weaker than before; 1 weaker; 2 perhaps weaker, because less is known now; 64 a file is not a
    report.
    """
    from labkit.crashtest.comparison import Comparison, read_report

    first = read_report(report)
    comparison = Comparison(None, first) if later is None else Comparison(first, read_report(later))
    print(comparison.markdown(), end="", flush=True)
    return int(comparison.change)
