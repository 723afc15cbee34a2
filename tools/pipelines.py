"""Crash pipelines of real engines: `python tools/pipelines.py NAME`, or `make pipelines ONLY=NAME,NAME`.

    python tools/pipelines.py                     lists all, with what is expected of each
    python tools/pipelines.py NAME [OPTIONS]      labkit crashtest --command for it; OPTIONS go to labkit crashtest
    python tools/pipelines.py NAME --healthy      runs it once, without a crash, and compares the rows
    python tools/pipelines.py NAME --record       stores the names of its effects in data/pipelines/engines/records
    python tools/pipelines.py NAME --effects DIR  stores its durable effects in DIR/NAME, as labkit effects --out does
    python tools/pipelines.py A,B --compare       tests them (or `all`) and compares with what is expected
    python tools/pipelines.py A,B --telling       the same, killed only where a kill shows most (`shown_by`)

Each needs its own interpreter, jars and servers (`pipeline_runs`); they are made if they are missing, and servers end
with this process. The file data/pipelines/engines/engines.toml states the expected result of each test.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline_records import keep
from pipeline_runs import Prepared, Report, expected_rows, prepared

from labkit.core.errors import LabError
from labkit.crashtest.engines import Pipeline, named, pipelines


def check_healthy(chosen: Prepared) -> int:
    """Run the pipeline once without a crash; return 0 if it wrote each row once, otherwise 1."""
    rows = sorted(chosen.healthy(), key=str)
    if rows == sorted(expected_rows(), key=str):
        print(f"{chosen.pipeline.name}: every row came out once")
        return 0
    print(f"{chosen.pipeline.name}: {len(expected_rows())} rows should come out, and these did: {rows}")
    return 1


def listing() -> str:
    """Return a text with a line for each pipeline."""
    lines = []
    for each in pipelines().values():
        where = "" if each.is_ours else "; installs an environment of its own"
        lines.append(f"{each.name:24} {each.guarantee:14} {each.does}{where}")
    return "\n".join(lines)


def one(
    pipeline: Pipeline, options: Sequence[str], *, healthy: bool, effects: Path | None = None, record: bool = False
) -> int:
    """Test a pipeline, or only run it as the options say; return the exit code."""
    with prepared(pipeline) as chosen:
        if effects is not None:
            return chosen.effects(effects / pipeline.name)
        if record:
            return keep_record(chosen)
        return check_healthy(chosen) if healthy else chosen.crash_test(options)


def keep_record(chosen: Prepared) -> int:
    """Run a pipeline once, and store the names of its effects for the table of orders; return the exit code."""
    seen = chosen.scratch / "seen"
    code = chosen.effects(seen)
    if not code:
        print(f"kept in {keep(chosen.pipeline, seen)}")
    return code


def compare(chosen: Sequence[Pipeline], options: Sequence[str], *, telling: bool) -> int:
    """Test these pipelines, and print a Markdown row for each; return 1 if one differs from what is expected."""
    print("| pipeline | expected | measured | violated | weakest at | runs | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    differing = 0
    for pipeline in chosen:
        begun = time.monotonic()
        with prepared(pipeline) as ready:
            only = ready.telling() if telling else []
            report = ready.report([*only, *options])
        row = measured(pipeline, report, time.monotonic() - begun)
        differing += not fits(pipeline, report)
        print(f"| {' | '.join(row)} |", flush=True)
    return 1 if differing else 0


def measured(pipeline: Pipeline, report: Report, seconds: float) -> tuple[str, ...]:
    """Return the cells of a pipeline's row in the table."""
    weakest = report["weakest"]
    return (
        pipeline.name,
        pipeline.guarantee,
        guarantee_of(report),
        ", ".join(axis for axis, held in report["axes"].items() if held == "violated"),
        weakest["id"] if weakest else "",
        str(len(report["runs"])),
        f"{seconds:.0f}",
    )


def guarantee_of(report: Report) -> str:
    """Return the guarantee that the report allows at best, or `unknown` if its claim is unknown."""
    claim = report["claim"]
    return "unknown" if claim["strength"] == "unknown" else str(claim["at_best"])


def fits(pipeline: Pipeline, report: Report) -> bool:
    """Return whether a report has the expected guarantee and violations."""
    counted = {"lost", "duplicate", "unexpected", "stuck"}
    violated = {axis for axis, held in report["axes"].items() if held == "violated"}
    return guarantee_of(report) == pipeline.guarantee and violated & counted == set(pipeline.axes)


def _stop(number: int, _frame: object) -> None:
    """Turn SIGTERM into an exception, so that servers and folders are removed."""
    sys.exit(128 + number)


def main() -> int:
    """Carry out the command line, and return the exit code."""
    signal.signal(signal.SIGTERM, _stop)
    parser = argparse.ArgumentParser(
        usage="%(prog)s [NAME[,NAME...]] [--healthy | --effects DIR | --record | --compare | --telling] [OPTIONS]",
        description="Crash a pipeline of a real engine with labkit crashtest.",
        epilog="Other options are handed to labkit crashtest.",
    )
    parser.add_argument("names", nargs="?", metavar="NAME", help="default: list them")
    parser.add_argument("--healthy", action="store_true", help="run it once, crash nothing")
    parser.add_argument("--effects", metavar="DIR", help="run it once, and keep its durable effects in DIR/NAME")
    parser.add_argument(
        "--record", action="store_true", help="run it once, and keep the names of its effects among the records"
    )
    parser.add_argument("--compare", action="store_true", help="test A,B (or all), and compare")
    parser.add_argument("--telling", action="store_true", help="compare, with kills where they tell most only")
    options, others = parser.parse_known_args()
    if options.names is None:
        print(listing())
        return 0
    names = list(pipelines()) if options.names == "all" else options.names.split(",")
    try:
        chosen = [named(name) for name in names]
        if options.compare or options.telling:
            return compare(chosen, others, telling=options.telling)
        kept = Path(options.effects).resolve() if options.effects else None
        return max(one(each, others, healthy=options.healthy, effects=kept, record=options.record) for each in chosen)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
