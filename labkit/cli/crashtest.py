"""Parses the options of `labkit crashtest`, runs the test, and prints and stores its report."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from labkit.cli import Stopped
from labkit.cli.common import Json, parameter, typed_options
from labkit.core.errors import InvalidInput
from labkit.core.options import with_arguments
from labkit.crashtest.configured import KINDS, OPTIONS, configured, demanded, kind_of, owner, requested

if TYPE_CHECKING:
    from labkit.crashtest.ledger import Tell

SAMPLE = "leave out --quick and --only and raise --seconds, or ask only for --expect not-refuted."
BETWEEN_LINES = "test on a machine whose system calls labkit can watch (labkit doctor), or use --expect not-refuted."

JUnit = Annotated[Path | None, typer.Option(help="Write the results to this file as JUnit XML.")]
Kept = Annotated[Path | None, typer.Option(help="A new folder for report, badge, diagram, effects and evidence.")]
Dry = Annotated[
    bool, typer.Option(help="Kill nothing; list the runs that a test would make, with the ids that --only accepts.")
]


def crashtest(
    context: typer.Context,
    *,
    junit: JUnit = None,
    out: Kept = None,
    dry: Dry = False,
    as_json: Json = False,
    **words: object,
) -> int:
    """Kill a real job before each of its durable effects, such as a write, and say what it really guarantees.

    FILE:NAME is a sink, which labkit runs in its own Spark. --command starts a whole pipeline in any language, which
    labkit kills at its system calls (Linux). The guarantee is unknown if the job writes something where the test cannot
    see it, or if a killed run proves nothing.

    The report says exactly-once only after a kill at every crash point; if several points leave the same files, one is
    enough. After a sample, such as --quick, it says not refuted, with the share of points tried. Exit codes: 0 done
    (and as expected); 1 weaker than expected; 2 unknown; 64 labkit cannot test this sink, pipeline, reader or store; 69
    system calls cannot be watched.
    """
    typed = typed_options(context, OPTIONS.values(), words)
    configuration = {} if kind_of(typed) else configured(Path("pyproject.toml"))
    if dry:
        _check_dry([*typed, *(["out"] if out else []), *(["junit"] if junit else [])])
    wanted, demand = requested(configuration, typed), demanded(configuration, typed)
    _check_files(junit, out)
    from labkit.crashtest.campaigns import campaign_of
    from labkit.crashtest.claim import Strength
    from labkit.crashtest.verdict import LINES

    with campaign_of(wanted, out, _tell(), only_lists=dry) as running:
        if dry:
            running.healthy()
            print(json.dumps(running.listing()) if as_json else _lines(running.listing()), flush=True)
            return 0
        stopped: Stopped | None = None
        try:
            report = running.everything()
        except Stopped as error:
            part = running.stopped()
            if part is None:
                raise
            stopped, report = error, part
    with ExitStack() as files:  # if one output fails, for example at a closed pipe, the others are still written
        if junit is not None:
            files.callback(lambda: junit.write_text(report.junit(demand.expect, demand.also), encoding="utf-8"))
        if out is not None:
            from labkit.crashtest.page import keep

            files.callback(keep, report, out)
        print(json.dumps(report.to_json()) if as_json else report.text(), flush=True)
    if stopped is not None:
        raise stopped
    code = report.code(demand.expect, demand.also)
    if code == 2 and report.claim.strength is Strength.SAMPLED:
        remedy = BETWEEN_LINES if report.eyes == LINES else SAMPLE
        print(f"{demand.expect} needs a kill at every crash point; {remedy}", file=sys.stderr)
    return code


def _lines(points: Sequence[Mapping[str, str]]) -> str:
    wide = max(len(each["id"]) for each in points)
    return "\n".join(f"{each['id']:<{wide}}  {each['line']}".rstrip() for each in points)


def _check_dry(given: Sequence[str]) -> None:
    if useless := [each for each in ("out", "junit", "only", "expect", "also") if each in given]:
        raise InvalidInput(f"--dry only lists crash points, so --{useless[0]} has no effect; leave one of them out.")


def _check_files(junit: Path | None, out: Path | None) -> None:
    if out is not None and out.exists():
        raise InvalidInput(f"{out}: this folder already exists; name a new one with --out.")
    if junit is None:
        return
    folder = junit.absolute().parent
    if junit.is_dir():
        raise InvalidInput(f"--junit {junit}: this is a folder, but the report is a file; name a file.")
    # --out names a folder that the test creates later.
    if out is not None and folder == out.absolute():
        return
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInput(
            f"--junit {junit}: labkit cannot write into {folder}; create this folder, or name a file in another one."
        )


def _parameters() -> Iterator[Parameter]:
    """Yield the options in the order in which --help lists them.

    First come those that name the sink or pipeline, then those for both, then those for sinks or pipelines only.
    """
    for each in sorted(OPTIONS.values(), key=lambda each: (not each.names_subject, (None, *KINDS).index(owner(each)))):
        kind_owner = None if each.names_subject else owner(each)
        prefix = f"Of {kind_owner.KIND.partition(',')[0]}: " if kind_owner else ""
        yield parameter(each, f"{prefix}{each.help[:1].lower() if prefix else each.help[:1]}{each.help[1:]}")


crashtest = with_arguments(crashtest, list(_parameters()))


def _tell() -> "Tell":
    """Return a function `(kind, text)` that prints progress to standard error, indented unless the kind is `run`."""
    console = Console(stderr=True)

    def tell(what: str, text: str) -> None:
        console.print(f"{'' if what == 'run' else '    '}{text}", markup=False, soft_wrap=True, highlight=False)

    return tell
