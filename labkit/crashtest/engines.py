"""Reads the shipped pipelines of real systems: each has a description, an expected result, and recorded results.

The programs, `engines.toml` and the records are in `data/pipelines/engines`, whose README says how they were made. This
module only reads them; it runs no pipeline.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.spark.options import shipped

ENGINES = shipped("pipelines/engines")
"""The folder of the pipelines' programs, their readers and their input."""
RECORDS = ENGINES / "records"
VERDICTS = ENGINES / "verdicts.jsonl"
"""The recorded results of crash tests, one to a line; `tools/pipelines.py NAME --keep` writes them."""
PROJECT = "project"
"""The name of labkit's own Python environment in `engines.toml`."""


@dataclass(frozen=True)
class Pipeline:
    """A pipeline of a real engine, such as Flink, that labkit ships; `engines.toml` explains the fields."""

    name: str
    system: str
    does: str
    promise: str
    source: str
    at: str
    guarantee: str
    axes: tuple[str, ...]
    change: str
    reader: str
    packages: tuple[str, ...]
    predicted: str = ""
    report: str = ""
    why: str = ""
    shown_by: tuple[str, ...] = ()
    environment: str = PROJECT
    read_environment: str = PROJECT
    pipeline: str = ""
    arguments: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The engine's name as users type it on the command line, such as `delta-lake` for `Delta Lake`."""
        return self.system.lower().replace(" ", "-")

    @property
    def program(self) -> Path:
        """The path of the program that runs this pipeline."""
        return ENGINES / (self.pipeline or f"{self.name}.py")

    @property
    def is_ours(self) -> bool:
        """Whether the pipeline runs in labkit's own Python environment; then only its jars must be downloaded."""
        return {self.environment, self.read_environment} == {PROJECT}


def pipelines() -> dict[str, Pipeline]:
    """Return all pipelines of real engines that labkit ships, as a dict from name to pipeline."""
    text = (ENGINES / "engines.toml").read_text(encoding="utf-8")
    return {name: msgspec.convert({"name": name, **fields}, Pipeline) for name, fields in tomllib.loads(text).items()}


def named(name: str) -> Pipeline:
    """Return the shipped pipeline with this name. Raises `InvalidInput` if there is none."""
    all_pipelines = pipelines()
    if name not in all_pipelines:
        raise InvalidInput(f"There is no pipeline {name[:40]}; choose one of {', '.join(all_pipelines)}.")
    return all_pipelines[name]


def not_run() -> dict[str, str]:
    """Return the engines that labkit has not crash-tested, as a dict from engine to the reason."""
    return tomllib.loads((ENGINES / "not_run.toml").read_text(encoding="utf-8"))


def chosen(names: str) -> list[Pipeline]:
    """Return the shipped pipelines that the user selected by a text such as `flink,spark_files`.

    The names between the commas are names of pipelines, names of engines (which select all pipelines of the engine), or
    `all`. Raises `InvalidInput` for an unknown name.
    """
    results: dict[str, Pipeline] = {}
    for name in names.split(","):
        of_system = {each.name: each for each in pipelines().values() if name in {"all", each.key}}
        results |= of_system or {name: named(name)}
    return list(results.values())


class Verdict(msgspec.Struct, frozen=True):
    """The recorded result of a crash test of a shipped pipeline, as one line of the file `verdicts.jsonl`."""

    name: str
    """The pipeline."""
    day: str
    """The date of the run, as `2026-11-27`."""
    labkit: str
    versions: list[str]
    """The versions of the tested packages, jars and servers, each as `NAME VERSION`."""
    options: list[str]
    """The options of `labkit crashtest` beside those that every test of the pipeline has."""
    claim: str
    """What the report claims, as `not refuted (12 of 83 points)`."""
    strength: str
    guarantee: str
    """The best guarantee that the runs allow, or `unknown`."""
    violated: list[str]
    """The violated properties among lost, duplicate, unexpected and stuck."""
    weakest: str
    """The weakest run, as `before rename done #1 (job.py:8 in mark)`; empty if no run violates a property."""
    because: str
    """What was wrong in the weakest run."""
    found: int
    """The number of crash points that the run without a crash showed."""
    tried: int
    runs: int
    unknown: int
    """The number of runs that prove nothing, for example because they did not reach their point."""
    seconds: int
    machine: str = ""
    """The kernel, Python and SQLite of the run, which no lock fixes."""


def verdicts() -> dict[str, Verdict]:
    """Return the recorded crash test results, as a dict from the name of the pipeline to its result."""
    lines = VERDICTS.read_bytes().splitlines() if VERDICTS.exists() else []
    records = (msgspec.json.decode(line, type=Verdict) for line in lines)
    return {each.name: each for each in records}


class Kept(msgspec.Struct, frozen=True):
    """A recorded run of a shipped pipeline: the test's command, the versions of the software, and the system calls."""

    command: str
    versions: list[str]
    effects: list[str]

    @property
    def name(self) -> str:
        return self.command.split()[2]


def kept(name: str) -> Kept:
    """Return the recorded run of the shipped pipeline `name`. Raises `InvalidInput` if there is no record."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        path = RECORDS / f"{named(name).program.stem}.json"
    if not path.exists():
        raise InvalidInput(
            f"the record {path.name} is missing; create it with `python tools/pipelines.py {name} --record`."
        )
    return msgspec.json.decode(path.read_bytes(), type=Kept)
