"""Crash the sample sinks: `python tools/sinks.py NAME,NAME`, or `make sinks ONLY=NAME,NAME`.

    python tools/sinks.py                    lists all, with what is expected of each
    python tools/sinks.py A,B                tests them (or `all`), killed where a kill shows most (`shown_by`)
    python tools/sinks.py A,B --whole        the same, as `labkit crashtest --quick` does it

The file data/sinks/expected.toml states the expected results. Servers and folders are removed with this process.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from build_sinks import SINKS, expected

from labkit.core.errors import InvalidInput, LabError
from labkit.core.judge import Outcome
from labkit.core.words import nearest
from labkit.crashtest.campaigns import crash_test
from labkit.crashtest.report import Report
from labkit.host.servers.tethered import tethered_kafka, tethered_postgres

BUDGET_SECONDS = 900
"""The seconds that one test may take on a busy machine."""


def new_topic(address: str) -> str:
    """Create a topic with one partition, since the broker creates none by itself, and return its name."""
    from kafka.admin import KafkaAdminClient, NewTopic

    name = f"crashtest-{os.getpid()}-{time.time_ns()}"
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    admin.close()
    return name


def written(count: int, path: Path) -> Path:
    """Write a file with `count` rows for the option `--rows`, and return its path."""
    rows = ({"id": one, "key": f"k{one}", "amount": one} for one in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def report_on(name: str, folder: Path, *, whole: bool = False) -> Report:
    """Test a sample sink and return the report; SINK_STORE and the server that it needs are in the environment."""
    wanted = expected()[name]
    rows = written(wanted["rows"], folder / "rows.jsonl") if "rows" in wanted else None
    return crash_test(
        f"{SINKS / name}.py:{wanted['name']}",
        quick=True,
        only=() if whole else tuple(wanted["shown_by"]),
        watch=(str(folder / "data"),),
        rows=rows,
        folder=folder / "out",
        seconds=BUDGET_SECONDS,
    )


def differences(name: str, report: Report) -> list[str]:
    """Return a sentence for each difference between a report and what is expected of the sample."""
    wanted, summary = expected()[name], report.summary
    unknown = {each.id: each.unknown for each in summary.unknown()}
    violated = {axis for axis, held in summary.axes.items() if held is Outcome.VIOLATED}
    certain = violated - set(wanted.get("sometimes", ()))
    pattern = report.diagnosis.code if report.diagnosis else ""
    compared = {
        "runs that are unknown": (unknown, {}),
        "guarantee": (summary.guarantee, wanted["guarantee"]),
        "violated": (certain, set(wanted["axes"])),
        "pattern": (pattern, wanted["pattern"]),
        "points that were hit": (summary.coverage.hit, summary.coverage.planned),
    }
    return [
        f"{what}: {actual!r}, but {expectation!r} was expected"
        for what, (actual, expectation) in compared.items()
        if actual != expectation
    ]


@contextmanager
def surroundings() -> Iterator[None]:
    """Provide a PostgreSQL and a Kafka broker within a `with` block, named in SINK_POSTGRES and SINK_KAFKA."""
    with ExitStack() as stack:
        postgres = stack.enter_context(tethered_postgres("--no-sync"))
        kafka = stack.enter_context(tethered_kafka())
        os.environ["SINK_POSTGRES"] = postgres.address
        os.environ["SINK_KAFKA"] = kafka.address
        yield


def compare(names: Sequence[str], *, whole: bool) -> int:
    """Test these sinks and print a line for each; return 1 if one differs from what is expected."""
    differing = 0
    for name in names:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="labkit-sink-") as folder:
            (Path(folder) / "data").mkdir()
            os.environ["SINK_STORE"] = str(Path(folder) / "data" / "store")
            os.environ["SINK_TOPIC"] = new_topic(os.environ["SINK_KAFKA"])
            try:
                report = report_on(name, Path(folder), whole=whole)
            except LabError as error:
                print(f"{name}: {error}", flush=True)
                differing += 1
                continue
        result = differences(name, report)
        differing += bool(result)
        message = "; ".join(result) or f"{report.summary.guarantee}, as expected"
        if result:
            print(report.text())
        print(f"{name}: {message} ({time.monotonic() - begun:.0f} s)", flush=True)
    return 1 if differing else 0


def chosen(names: str) -> list[str]:
    """Return the names of the chosen samples (`all`, or a list with commas). Raises `InvalidInput`."""
    known = expected()
    asked = list(known) if names == "all" else names.split(",")
    for name in asked:
        if name not in known:
            raise InvalidInput(f"no sample {name!r}; {nearest(name, list(known))}")
    return asked


def main() -> int:
    """Carry out the command line, and return the exit code."""
    # An exception, so that servers and folders are removed.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    parser = argparse.ArgumentParser(description="Crash the sample sinks, and compare with what is expected.")
    parser.add_argument("names", nargs="?", metavar="NAME[,NAME...]", help="or all; default: list them")
    parser.add_argument("--whole", action="store_true", help="whole quick tests")
    options = parser.parse_args()
    if options.names is None:
        for name, each in expected().items():
            print(f"{name:24} {each['guarantee']:14} {each['does']}")
        return 0
    try:
        names = chosen(options.names)
        with surroundings():
            return compare(names, whole=options.whole)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
