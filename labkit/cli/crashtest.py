"""`labkit crashtest`: what a user's own sink or pipeline guarantees, measured. Options, printing, files; no test."""

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from labkit.core.errors import InvalidInput

if TYPE_CHECKING:
    from labkit.crashtest.ledger import Tell
    from labkit.crashtest.report import Report


def crashtest(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE:NAME",
            help="A foreachBatch function, ForeachWriter, Python DataSource, or a function that gets the stream and "
            "starts a query; or package.module:NAME, or pyproject.toml's.",
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="Returns the rows. Default: read in the sink's file.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="Instead of FILE:NAME: how a whole pipeline is started, by a shell, in this folder."
        ),
    ] = None,
    read_command: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="Of a pipeline: prints the rows as JSON Lines, instead of --reader."),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Of a pipeline: the rows that should come out, FILE.jsonl or FILE:NAME. Default: "
            "those of a run without a "
            "crash.",
        ),
    ] = None,
    feed: Annotated[
        str | None, typer.Option(metavar="CMD", help="Of a pipeline: puts the input there before each run.")
    ] = None,
    reset: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Of a pipeline: empties store, checkpoint and input. Default: reset in the reader's file.",
        ),
    ] = None,
    watch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR", help="Of a pipeline: a folder that belongs to it. Default: this folder; may be repeated."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Of a pipeline: restore an older copy of this folder in one run.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option(help="The guarantee that must be measured; exit 1 if it is weaker.")
    ] = None,
    power_cut: Annotated[
        bool | None,
        typer.Option(
            "--power-cut", help="Of a pipeline: the power fails, too, so that what was not synced may be missing."
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of a pipeline: runs side by side, each in a copy of this folder. Default: as many as is safe.",
        ),
    ] = None,
    also: Annotated[list[str] | None, typer.Option(help="An axis that must hold too, as fractured_read.")] = None,
    batches: Annotated[int | None, typer.Option(help="Batches of the job: 3 unless you say another number.")] = None,
    rows: Annotated[
        Path | None, typer.Option(help="Your own rows, JSON Lines with a whole number id. Default: made up.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option for a data source, a format or a table; may be repeated."),
    ] = None,
    sink_format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Instead of FILE:NAME: the sink is writeStream.format(NAME)."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of FILE:NAME: the sink is writeStream.toTable(NAME).")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this run of a report, by its id; may be repeated. It can refute a guarantee, and proves none."
        ),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Code below this folder is the sink's, too. Default: the project."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Files, or HOST:PORT, that are no part of the sink, as *.csv.tmp."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Configuration for the test's Spark sessions; may be repeated."),
    ] = None,
    jars: Annotated[
        list[str] | None, typer.Option(metavar="PATHS", help="Jars for the sessions, separated by commas.")
    ] = None,
    packages: Annotated[
        list[str] | None,
        typer.Option(metavar="COORDINATES", help="Packages of Maven, group:artifact:version, separated by commas."),
    ] = None,
    eyes: Annotated[
        str | None,
        typer.Option(
            metavar="kernel",
            help="Kill a plain job with the sink at its system calls: sees every library and the JVM (Linux); slower.",
        ),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help="Also kill before lines of your own code; done anyway where something writes unseen."
        ),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Only the points that matter most; of a sink under three minutes, of a pipeline as long as its starts "
            "take.",
        ),
    ] = False,
    limit: Annotated[float, typer.Option(help="Seconds in which the sink must do something.")] = 30.0,
    seconds: Annotated[
        float,
        typer.Option(
            help="Seconds for all runs; what does not fit is unknown. Default: 170 if quick, 900 if not, and of a "
            "pipeline what its planned runs need."
        ),
    ] = 0.0,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for report, badge, diagram, effects and evidence.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else there.")
    ] = False,
) -> int:
    """Kill a real job at every durable effect of your own sink or pipeline, and say what it really guarantees.

    FILE:NAME is a sink, run in the lab's Spark. --command is a whole pipeline of any language and engine, killed at its
    system calls (Linux). The guarantee is unknown where something writes that the test does not see, and where a run
    proves nothing.
    Exit 0 done (and as expected), 1 weaker than expected, 2 unknown, 64 what is under test, its reader or store cannot
    be tested, 69 this machine cannot watch system calls.
    """
    from labkit.crashtest.configured import check_axes, configured, guarantee_named

    named = subject or command or sink_format or table
    said = {} if named else configured(Path("pyproject.toml"))
    common: dict[str, Any] = {
        "reader": reader,
        "quick": quick,
        "only": tuple(only or ()),
        "limit": limit,
        "seconds": seconds,
        "ignored": tuple(ignore or ()),
    }
    sinks = {
        "batches": batches,
        "rows": rows,
        "options": option,
        "code": code,
        "conf": conf,
        "jars": jars,
        "packages": packages,
        "sink_format": sink_format,
        "table": table,
        "lines": lines or None,
        "eyes": eyes,
    }
    pipelines = {
        "read_command": read_command,
        "expected": expected,
        "feed": feed,
        "reset": reset,
        "watch": watch,
        "checkpoint": checkpoint,
        "power_cut": power_cut,
        "parallel": parallel,
    }
    is_pipeline = command is not None or (named is None and "command" in said)
    others = {name: part for name, part in pipelines.items() if name != "watch"}
    _refuse_mixed(subject, command, sinks if is_pipeline else others)
    guarantee = guarantee_named(expect or said.get("expect"))
    axes = also or said.get("also", [])
    check_axes(axes)
    if out is not None and out.exists():
        raise InvalidInput(f"{out}: this folder is there already; name a new one with --out.")
    if junit is not None:
        _check_junit(junit, out)
    if is_pipeline:
        report = _test_pipeline(said, command, out, common | pipelines)
    else:
        report = _test_sink(said, subject, out, common | sinks | {"watch": watch})
    with ExitStack() as files:  # a file that cannot be written, or a closed pipe, costs no other part of the result
        if junit is not None:
            files.callback(lambda: junit.write_text(report.junit(guarantee, axes), encoding="utf-8"))
        if out is not None:
            from labkit.crashtest.kept import keep

            files.callback(keep, report, out)
        print(json.dumps(report.to_json()) if as_json else report.text(), flush=True)
    return report.code(guarantee, axes)


def _check_junit(junit: Path, out: Path | None) -> None:
    """Raises `InvalidInput` if the file could not be written after the test, unless the test makes its folder."""
    folder = junit.absolute().parent
    if junit.is_dir():
        raise InvalidInput(f"--junit {junit}: this is a folder; name a file.")
    if out is not None and folder == out.absolute():
        return
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInput(f"--junit {junit}: nothing can be written into {folder}; make this folder or name another.")


def _refuse_mixed(subject: str | None, command: str | None, others: dict[str, Any]) -> None:
    """Raises `InvalidInput` where a sink and a pipeline are asked for at once."""
    if subject is not None and command is not None:
        raise InvalidInput("FILE:NAME is a sink and --command a pipeline; test one of them at a time.")
    for name, part in others.items():
        if part is not None:
            option = "--" + {"options": "option", "sink_format": "format"}.get(name, name).replace("_", "-")
            what = "a sink, FILE:NAME" if command else "a pipeline, --command"
            raise InvalidInput(f"{option} belongs to {what}; leave it out here.")


def _test_sink(said: dict[str, Any], subject: str | None, out: Path | None, given: dict[str, Any]) -> "Report":
    from labkit.crashtest.campaign import campaign
    from labkit.crashtest.configured import combined
    from labkit.crashtest.kernel import kernel_campaign

    wanted = combined(said, subject, **given)
    if wanted.by_kernel:
        with kernel_campaign(wanted, out, _tell()) as watched:
            return watched.everything()
    with campaign(wanted, out, _tell()) as running:
        return running.everything()


def _test_pipeline(said: dict[str, Any], command: str | None, out: Path | None, given: dict[str, Any]) -> "Report":
    from labkit.crashtest.blackbox.campaign import pipeline_campaign
    from labkit.crashtest.configured import pipeline

    wanted = pipeline(said, command, **given)
    with pipeline_campaign(wanted, out, _tell()) as running:
        return running.everything()


def _tell() -> "Tell":
    """Progress, on standard error."""
    console = Console(stderr=True)

    def tell(what: str, said: str) -> None:
        console.print(f"{'' if what == 'run' else '    '}{said}", markup=False, soft_wrap=True, highlight=False)

    return tell
