"""Record the observed durable effects of each pipeline of a real engine in data/pipelines/engines/records.

A record has only names: `<kafka>` and `<postgres>` replace servers, whose addresses differ between runs. A test
compares the order of its writes with the table of orders.
"""

import json
import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from pipeline_environments import ENVIRONMENTS, jar_sets

from labkit.crashtest.engines import PROJECT, RECORDS, Kept, Pipeline
from labkit.host.servers import kafka_jars

_SERVERS = (
    (re.compile(r"^send 127\.0\.0\.1:\d+"), "send <kafka>"),
    (re.compile(r"^send unix:\S*\.s\.PGSQL\.\d+"), "send <postgres>"),
)
_ENGINE = re.compile(r"^(pyspark|apache-flink)==(\S+)", re.MULTILINE)


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


def versions(pipeline: Pipeline) -> list[str]:
    """Return the versions of engine, client, broker and jars with which a pipeline runs."""
    results = []
    if pipeline.environment != PROJECT:
        lock = (ENVIRONMENTS / f"{pipeline.environment}.lock").read_text("utf-8")
        results += [f"{name} {number}" for name, number in _ENGINE.findall(lock)]
    elif "pyspark" in pipeline.program.read_text(encoding="utf-8"):
        results.append(f"pyspark {version('pyspark')}")
    else:
        results.append(f"kafka-python {version('kafka-python')}")
    if "kafka" in pipeline.needs:
        results.append(f"kafka {kafka_jars.VERSION}")
    sets = jar_sets()
    results += [f"{package[1]} {package[2]}" for name in pipeline.jars for package in sets[name].packages]
    return results
