"""`labkit crashtest`: what a user's own sink guarantees, measured. Options, printing, files; the test is elsewhere."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from labkit.errors import InvalidInput
from labkit.failpoints import nearest
from labkit.verdict import Guarantee

if TYPE_CHECKING:
    from labkit.crashtest.report import Report
    from labkit.crashtest.settings import Settings

KEYS = {"subject", "reader", "expect", "also", "batches", "rows", "options"}
"""What `[tool.labkit.crashtest]` in pyproject.toml may say."""


def crashtest(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE:NAME",
            help="A foreachBatch function, ForeachWriter or Python DataSource; or pyproject.toml's.",
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="Returns the rows. Default: read in the sink's file.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option(help="The guarantee that must be measured; exit 1 if it is weaker.")
    ] = None,
    also: Annotated[list[str] | None, typer.Option(help="An axis that must hold too, as fractured_read.")] = None,
    batches: Annotated[int | None, typer.Option(help="Batches of the job: 3 unless you say another number.")] = None,
    rows: Annotated[
        Path | None, typer.Option(help="Your own rows, JSON Lines with a whole number id. Default: made up.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option for a data source; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this run of a report, by its id; may be repeated.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the points that matter most; under three minutes.")
    ] = False,
    limit: Annotated[float, typer.Option(help="Seconds in which the sink must do something.")] = 30.0,
    seconds: Annotated[float, typer.Option(help="Seconds for all runs. Default: 170 if quick, 900 if not.")] = 0.0,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for report, badge, diagram, effects and evidence.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
    ] = False,
) -> int:
    """Kill a real Spark job at every durable effect of your own sink, and say what the sink really guarantees.

    Exit 0 done (and as expected), 1 weaker than expected, 2 unknown, 64 the sink, reader or store cannot be tested.
    """
    from labkit.crashtest.settings import settings

    said = configured(Path("pyproject.toml")) if subject is None else {}
    subject = subject or said.get("subject")
    if subject is None:
        raise InvalidInput("which sink? Write FILE:NAME, as in sink.py:write_batch, or name it in pyproject.toml.")
    wanted = settings(
        subject,
        reader=reader or said.get("reader"),
        batches=batches or said.get("batches", 3),
        quick=quick,
        rows=rows or (Path(said["rows"]) if "rows" in said else None),
        options=tuple(option or said.get("options", ())),
        only=tuple(only or ()),
        limit=limit,
        seconds=seconds,
    )
    expected = guarantee_named(expect or said.get("expect"))
    axes = also or said.get("also", [])
    check_axes(axes)
    if out is not None and out.exists():
        raise InvalidInput(f"{out}: this folder is there already; name a new one with --out.")
    report = _run(wanted, out, quiet=as_json)
    if junit is not None:
        junit.write_text(report.junit(expected, axes), encoding="utf-8")
    if out is not None:
        keep(report, out)
    print(json.dumps(report.to_json()) if as_json else report.text())
    return report.code(expected, axes)


def _run(wanted: "Settings", out: Path | None, *, quiet: bool) -> "Report":
    from labkit.crashtest.campaign import campaign, silent

    console = Console(stderr=True)

    def tell(what: str, said: str) -> None:
        console.print(f"  {'...' if what == 'run' else '   '} {said}", markup=False, soft_wrap=True, highlight=False)

    with campaign(wanted, out, silent if quiet else tell) as running:
        return running.everything()


def guarantee_named(text: str | None) -> Guarantee | None:
    """A guarantee by its name. Raises `InvalidInput` for another word."""
    if text is None:
        return None
    known = [each.value for each in Guarantee if each is not Guarantee.UNKNOWN]
    if text not in known:
        raise InvalidInput(f"--expect {text}: unknown; {nearest(text, known)}")
    return Guarantee(text)


def check_axes(axes: Sequence[str]) -> None:
    """Raises `InvalidInput` for an axis that does not exist."""
    from labkit.crashtest.verdict import AXES

    for axis in axes:
        if axis not in AXES:
            raise InvalidInput(f"--also {axis}: unknown; {nearest(axis, list(AXES))}")


def configured(path: Path) -> dict[str, Any]:
    """What `[tool.labkit.crashtest]` says; nothing if there is none. Raises `InvalidInput` for what it may not say."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not valid TOML ({error}).") from None
    said: dict[str, Any] = content.get("tool", {}).get("labkit", {}).get("crashtest", {})
    for key in said:
        if key not in KEYS:
            raise InvalidInput(f"{path}, [tool.labkit.crashtest]: {key}: unknown; {nearest(key, sorted(KEYS))}")
    return said


def keep(report: "Report", out: Path) -> None:
    """Writes what a build may want to keep beside the logs and the evidence."""
    (out / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
    (out / "report.json").write_text(json.dumps(report.to_json(), indent=2), encoding="utf-8")
    (out / "badge.svg").write_text(report.badge(), encoding="utf-8")
    if report.picture:
        (out / "weakest.svg").write_text(report.picture, encoding="utf-8")
