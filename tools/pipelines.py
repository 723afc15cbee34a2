"""Crash pipelines of real systems: `make systems ONLY=NAME,NAME`, or `python tools/pipelines.py NAME`.

    python tools/pipelines.py                     lists all, with what is expected of each
    python tools/pipelines.py NAME [OPTIONS]      labkit crashtest --command for it; OPTIONS go to labkit crashtest
    python tools/pipelines.py NAME --healthy      runs it once, without a crash, and compares the rows
    python tools/pipelines.py NAME --record       stores the names of its effects in data/pipelines/engines/records
    python tools/pipelines.py NAME --effects DIR  stores its durable effects in DIR/NAME, as labkit effects --out does
    python tools/pipelines.py A,B --compare       tests them (or `all`) and compares with what is expected
    python tools/pipelines.py A,B --telling       the same, killed only where a kill shows most (`shown_by`)
    python tools/pipelines.py A,B --keep          compares, and stores each verdict in verdicts.jsonl

NAME is a pipeline, or a system with all its pipelines (dlt). Without OPTIONS, --compare repeats a stored verdict with
the options that it had.

Each needs its own interpreter, jars and servers (`pipeline_runs`); they are made if they are missing, and servers end
with this process. The file data/pipelines/engines/engines.toml states the expected result of each test, and
tools/build_systems.py writes docs/reference/systems.md from the stored verdicts.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline_records import keep, keep_verdict, verdict
from pipeline_runs import Prepared, expected_rows, prepared
from pipeline_verdicts import Verdict, chosen, verdicts

from labkit.core.errors import LabError
from labkit.teach.engine_pipelines import Pipeline, pipelines


def check_healthy(ready: Prepared) -> int:
    """Run the pipeline once without a crash; return 0 if it wrote each row once, otherwise 1."""
    rows = sorted(ready.healthy(), key=str)
    if rows == sorted(expected_rows(), key=str):
        print(f"{ready.pipeline.name}: every row came out once")
        return 0
    print(f"{ready.pipeline.name}: {len(expected_rows())} rows should come out, and these did: {rows}")
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
    with prepared(pipeline) as ready:
        if effects is not None:
            return ready.effects(effects / pipeline.name)
        if record:
            return keep_record(ready)
        return check_healthy(ready) if healthy else ready.crash_test(options)


def keep_record(ready: Prepared) -> int:
    """Run a pipeline once, and store the names of its effects for the table of orders; return the exit code."""
    seen = ready.scratch / "seen"
    code = ready.effects(seen)
    if not code:
        print(f"kept in {keep(ready.pipeline, seen)}")
    return code


def compare(
    chosen_ones: Sequence[Pipeline], options: Sequence[str], *, telling: bool = False, keep: bool = False
) -> int:
    """Test these pipelines and print a row for each; with `keep`, store each verdict. Return 1 if one differs."""
    print("| pipeline | expected | measured | violated | weakest | runs | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    kept, differing = verdicts(), 0
    for pipeline in chosen_ones:
        begun = time.monotonic()
        with prepared(pipeline) as ready:
            given = [*(ready.telling() if telling else ()), *options]
            words = given or (kept[pipeline.name].options if pipeline.name in kept else [])
            report = ready.report(words)
        record = verdict(pipeline, report, words, time.monotonic() - begun)
        if keep:
            keep_verdict(record)
        differing += not fits(pipeline, record)
        print(f"| {' | '.join(row(pipeline, record))} |", flush=True)
    return 1 if differing else 0


def row(pipeline: Pipeline, record: Verdict) -> tuple[str, ...]:
    """Return the cells of a pipeline's row in the table."""
    violated = ", ".join(record.violated)
    runs, seconds = str(record.runs), str(record.seconds)
    return (pipeline.name, pipeline.guarantee, record.guarantee, violated, record.weakest, runs, seconds)


def fits(pipeline: Pipeline, record: Verdict) -> bool:
    """Return whether a verdict has the expected guarantee and violations."""
    return record.guarantee == pipeline.guarantee and set(record.violated) == set(pipeline.axes)


def main() -> int:
    """Carry out the command line, and return the exit code."""
    # An exception, so that servers and folders are removed.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    parser = argparse.ArgumentParser(
        usage="%(prog)s [NAME[,NAME...]] [--healthy | --effects DIR | --record | --compare | --telling | --keep] [...]",
        description="Crash a pipeline of a real system with labkit crashtest.",
        epilog="Other options are handed to labkit crashtest.",
    )
    parser.add_argument("names", nargs="?", metavar="NAME", help="default: list them")
    parser.add_argument("--healthy", action="store_true", help="run it once, crash nothing")
    parser.add_argument("--effects", metavar="DIR", help="run it once, and keep its durable effects in DIR/NAME")
    parser.add_argument(
        "--record", action="store_true", help="run it once, and keep the names of its effects among the records"
    )
    parser.add_argument("--compare", action="store_true", help="test A,B (or all), and compare")
    parser.add_argument("--telling", action="store_true", help="compare, but kill only where a kill shows most")
    parser.add_argument("--keep", action="store_true", help="compare, and store each verdict in verdicts.jsonl")
    options, others = parser.parse_known_args()
    if options.names is None:
        print(listing())
        return 0
    try:
        tested = chosen(options.names)
        if options.compare or options.telling or options.keep:
            return compare(tested, others, telling=options.telling, keep=options.keep)
        out = Path(options.effects).resolve() if options.effects else None
        return max(one(each, others, healthy=options.healthy, effects=out, record=options.record) for each in tested)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
