"""Run the chosen measurements and print tables, or one JSON object: `python -m bench`, or `make bench`.

Figures are medians of several rounds: compare the ratios, not the times. An error of labkit becomes one sentence, with
the exit code of the command `labkit`.
"""

import json
import sys
from typing import Annotated

import typer

from bench.machine import machine
from bench.registry import MEASUREMENTS, select
from bench.rows import Rows
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput, LabError

HELP = "\n".join(
    [
        "Measure this machine; everything takes about twenty minutes.\n\n\b",
        *(f"{name:9} {each.title}" for name, each in MEASUREMENTS.items()),
    ]
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=HELP)
def bench(
    only: Annotated[list[str] | None, typer.Option(help="Only these measurements; may be repeated.")] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds; the median counts. Default: 1, 3 or 5, depending on the measurement.")
    ] = None,
    store: Annotated[list[str] | None, typer.Option(help="Stores of totals; may be repeated. Default: all.")] = None,
    words: Annotated[int | None, typer.Option(help="Words that totals counts. Default: five million.")] = None,
    states: Annotated[
        int | None, typer.Option(help="States at which spark's search stops. Default: a million.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> None:
    """Run the chosen measurements and print them. Raises `InvalidInput` before the first one begins."""
    if rounds is not None and not 1 <= rounds <= 100:
        raise InvalidInput(f"--rounds {rounds}: choose 1 to 100.")
    chosen = select(only or [], store or [], words, states)
    before = machine()
    measured: dict[str, Rows] = {}
    for name, measurement in chosen.items():
        measured[name] = measurement.measure(rounds or measurement.rounds)
        if not as_json:
            _show(measured[name])
    if as_json:
        print(json.dumps({"machine": before, **measured}))
    else:
        print("\n".join(f"{name}: {value}" for name, value in before.items()))


def _show(rows: Rows) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    result = table(*columns)
    for row in rows:
        result.add_row(*(_cell(row.get(name, "")) for name in columns))
    show(result)
    print(flush=True)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


if __name__ == "__main__":
    try:
        app(prog_name="python -m bench")
    except LabError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
