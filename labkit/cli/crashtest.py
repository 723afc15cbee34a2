"""`labkit crashtest`: what a user's own sink guarantees, measured. Options, printing, files; the test is elsewhere."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from labkit.core.errors import InvalidInput

if TYPE_CHECKING:
    from labkit.crashtest.report import Report
    from labkit.crashtest.settings import Settings


def crashtest(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE:NAME",
            help="A foreachBatch function, ForeachWriter or Python DataSource; or package.module:NAME, or pyproject.toml's.",
        ),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:NAME",
            help="Returns the rows. Default: read in the sink's file.",
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            help="The guarantee that must be measured; exit 1 if it is weaker."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(help="An axis that must hold too, as fractured_read."),
    ] = None,
    batches: Annotated[
        int | None,
        typer.Option(help="Batches of the job: 3 unless you say another number."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Your own rows, JSON Lines with a whole number id. Default: made up."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An option for a data source; may be repeated."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this run of a report, by its id; may be repeated. It can refute a guarantee, and proves none."
        ),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Code below this folder is the sink's, too. Default: the project.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="Files, or HOST:PORT, that are no part of the sink, as *.csv.tmp.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Only the points that matter most; under three minutes."
        ),
    ] = False,
    limit: Annotated[
        float, typer.Option(help="Seconds in which the sink must do something.")
    ] = 30.0,
    seconds: Annotated[
        float,
        typer.Option(help="Seconds for all runs. Default: 170 if quick, 900 if not."),
    ] = 0.0,
    junit: Annotated[
        Path | None, typer.Option(help="Write JUnit XML to this file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new folder for report, badge, diagram, effects and evidence."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object on standard output and nothing else there.",
        ),
    ] = False,
) -> int:
    """Kill a real Spark job at every durable effect of your own sink, and say what the sink really guarantees.

    The guarantee is unknown where something writes that the test does not see, and where a run proves nothing.
    Exit 0 done (and as expected), 1 weaker than expected, 2 unknown, 64 the sink, reader or store cannot be tested.
    """
    from labkit.crashtest.configured import (
        check_axes,
        combined,
        configured,
        guarantee_named,
    )

    said = configured(Path("pyproject.toml")) if subject is None else {}
    wanted = combined(
        said,
        subject,
        reader=reader,
        batches=batches,
        quick=quick,
        rows=rows,
        options=option,
        only=tuple(only or ()),
        limit=limit,
        seconds=seconds,
        code=tuple(code or ()),
        ignored=tuple(ignore or ()),
    )
    expected = guarantee_named(expect or said.get("expect"))
    axes = also or said.get("also", [])
    check_axes(axes)
    if out is not None and out.exists():
        raise InvalidInput(
            f"{out}: this folder is there already; name a new one with --out."
        )
    report = _run(wanted, out)
    if junit is not None:
        junit.write_text(report.junit(expected, axes), encoding="utf-8")
    if out is not None:
        keep(report, out)
    print(json.dumps(report.to_json()) if as_json else report.text())
    return report.code(expected, axes)


def _run(wanted: "Settings", out: Path | None) -> "Report":
    """The test, with its progress on standard error."""
    from labkit.crashtest.campaign import campaign

    console = Console(stderr=True)

    def tell(what: str, said: str) -> None:
        console.print(
            f"{'' if what == 'run' else '    '}{said}",
            markup=False,
            soft_wrap=True,
            highlight=False,
        )

    with campaign(wanted, out, tell) as running:
        return running.everything()


def keep(report: "Report", out: Path) -> None:
    """Writes what a build may want to keep beside the logs and the evidence."""
    (out / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
    (out / "report.json").write_text(
        json.dumps(report.to_json(), indent=2), encoding="utf-8"
    )
    (out / "badge.svg").write_text(report.badge(), encoding="utf-8")
    if report.picture:
        (out / "weakest.svg").write_text(report.picture, encoding="utf-8")
